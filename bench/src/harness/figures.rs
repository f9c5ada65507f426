//! Quantiles of a sample.

/// A sample, sorted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures(Vec<f64>);

// === impl Figures ===

impl Figures {
    pub(crate) fn of(mut sample: Vec<f64>) -> Self {
        sample.sort_by(f64::total_cmp);
        Self(sample)
    }

    /// The smallest value that at least `share` of the sample does not exceed (nearest rank).
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        if self.0.is_empty() {
            return f64::NAN;
        }
        let rank = (self.0.len() as f64 * share).ceil() as usize;
        self.0[rank.clamp(1, self.0.len()) - 1]
    }

    /// The values of the sample in ascending order.
    pub(crate) fn all(&self) -> &[f64] {
        &self.0
    }

    /// Size of the sample.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn p50(&self) -> f64 {
        self.quantile(0.5)
    }

    pub(crate) fn p99(&self) -> f64 {
        self.quantile(0.99)
    }

    pub(crate) fn max(&self) -> f64 {
        self.quantile(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_of_the_sample() {
        let figures = Figures::of((1..=100).rev().map(f64::from).collect());
        assert_eq!(
            (figures.p50(), figures.p99(), figures.max()),
            (50.0, 99.0, 100.0)
        );
        assert_eq!(Figures::of(vec![7.0]).p50(), 7.0);
        assert!(Figures::default().p50().is_nan());
    }
}
