//! A case of the suite.

use std::fmt;

use crate::device::Device;

type Run = Box<dyn Fn(&dyn Device) -> Result<(), String> + Send + Sync>;

/// A case: what a device must do, and a run that finds out.
pub struct Case {
    name: String,
    run: Run,
}

// === impl Case ===

impl Case {
    pub(super) fn new(
        name: impl Into<String>,
        run: impl Fn(&dyn Device) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            run: Box::new(run),
        }
    }

    /// What the device must do, such as `the product of 2^10 points and random scalars`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs the case. It evicts the bases that it loads.
    ///
    /// # Errors
    ///
    /// What the device did instead.
    pub fn run(&self, device: &dyn Device) -> Result<(), String> {
        (self.run)(device)
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// An error unless the condition holds.
pub(super) fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    match holds {
        true => Ok(()),
        false => Err(otherwise()),
    }
}
