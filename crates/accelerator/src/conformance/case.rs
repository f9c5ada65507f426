//! A case of the suite.

use std::fmt;

use crate::device::Device;

type Run<D> = Box<dyn Fn(&D) -> Result<(), String> + Send + Sync>;

/// A case: a demand on a device, and a run that finds out. `D` is the device as the case sees it.
pub struct Case<D: ?Sized = dyn Device> {
    name: String,
    run: Run<D>,
}

// === impl Case ===

impl<D: ?Sized> Case<D> {
    /// A case by its demand and its run, which answers with the device's failing if there is one.
    pub fn new(
        name: impl Into<String>,
        run: impl Fn(&D) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            run: Box::new(run),
        }
    }

    /// The demand, such as `the product of 2^10 points and random scalars`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs the case. It leaves the device as it was, but for the content of its memory.
    ///
    /// # Errors
    ///
    /// The device's failing.
    pub fn run(&self, device: &D) -> Result<(), String> {
        (self.run)(device)
    }
}

impl<D: ?Sized> fmt::Debug for Case<D> {
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
