//! Name of this machine's processors.

use std::fs;

/// The processors' model, as the system names it, such as `AMD EPYC 9654 96-Core Processor`; `None` if it does not.
pub fn processor_name() -> Option<String> {
    name_in(&fs::read_to_string("/proc/cpuinfo").ok()?)
}

/// The model in a text like `/proc/cpuinfo`. Its spaces are single ones.
fn name_in(cpuinfo: &str) -> Option<String> {
    cpuinfo.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_name = name.trim() == "model name" && !value.is_empty();
        (is_name && !value.contains(char::is_control)).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_processor_s_name_is_found() {
        let text = "processor\t: 0\nmodel\t: 17\nmodel name\t: AMD  EPYC 9654 \nflags\t: fpu\n";
        assert_eq!(name_in(text).as_deref(), Some("AMD EPYC 9654"));
        for text in [
            "",
            "model name",
            "model name\t:  \n",
            "nothing: here\n",
            "model name: \x1b\n",
        ] {
            assert_eq!(name_in(text), None, "{text:?}");
        }
    }
}
