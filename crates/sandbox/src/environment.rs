//! The environment of a program.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Variables that every program gets if this process has them: where programs, libraries, files and
/// temporary files are, and the language. None of them holds a secret.
const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    // The driver's libraries in containers with CUDA, and the selection of visible cards.
    "LD_LIBRARY_PATH",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
];

/// Prefix of the names of CUDA's variables. `NVIDIA_` is not allowed as a prefix: `NVIDIA_API_KEY`
/// is a secret.
const CUDA: &str = "CUDA_";

/// Sources of a program's environment: the allow-list, then [`inherit`](Self::inherit), then
/// [`set`](Self::set); later ones override earlier ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// Further variables of this process that the program gets, by name. One that is not set here is
    /// not set there.
    pub inherit: Vec<String>,
    /// Variables with their values.
    pub set: BTreeMap<String, String>,
}

/// Whether a variable can have this name.
pub fn is_variable_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

// === impl Environment ===

impl Environment {
    /// All variables of the program; whatever else this process has is kept from it
    /// ([`Command::env_clear`](std::process::Command::env_clear)).
    pub fn variables(&self) -> BTreeMap<OsString, OsString> {
        self.variables_of(std::env::vars_os())
    }

    /// The same, for a process whose variables are `own`.
    fn variables_of(
        &self,
        own: impl Iterator<Item = (OsString, OsString)>,
    ) -> BTreeMap<OsString, OsString> {
        let inherited = own.filter(|(name, _)| {
            is_allowed(name)
                || self
                    .inherit
                    .iter()
                    .any(|inherit| name == OsStr::new(inherit))
        });
        let set = self.set.iter();
        let set = set.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        inherited.chain(set).collect()
    }
}

fn is_allowed(name: &OsStr) -> bool {
    name.to_str()
        .is_some_and(|name| ALLOWED.contains(&name) || name.starts_with(CUDA))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        let own = |&(name, value): &(&str, &str)| (name.into(), value.into());
        pairs.iter().map(own).collect()
    }

    #[test]
    fn only_listed_inherited_and_set_variables_pass() {
        let own = pairs(&[
            ("PATH", "/bin"),
            ("HOME", "/home/mill"),
            ("CUDA_VISIBLE_DEVICES", "0"),
            ("PROOFMILL_BUS", "nats://mill:password@bus"),
            ("PROOFMILL_TOKEN", "secret"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("NVIDIA_API_KEY", "secret"),
            ("LD_PRELOAD", "/tmp/x.so"),
            ("TZ", "UTC"),
            ("LANG", "C"),
        ]);
        let environment = Environment {
            inherit: vec!["TZ".into(), "MISSING".into(), "HOME".into()],
            set: [("LANG".into(), "de".into()), ("THREADS".into(), "4".into())].into(),
        };
        let expected = pairs(&[
            ("PATH", "/bin"),
            ("HOME", "/home/mill"),
            ("CUDA_VISIBLE_DEVICES", "0"),
            ("TZ", "UTC"),
            ("LANG", "de"),
            ("THREADS", "4"),
        ]);
        assert_eq!(
            environment.variables_of(own.into_iter()),
            expected.into_iter().collect()
        );
    }
}
