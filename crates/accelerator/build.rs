//! Compiles the CUDA kernels as host C++, where the feature `host-kernels` asks for it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "host-kernels")]
    host_kernels::compile();
}

#[cfg(feature = "host-kernels")]
mod host_kernels {
    use std::fmt::Write as _;
    use std::path::{Path, PathBuf};

    /// Compiles each module, and writes a table of the kernels' names for Rust.
    pub(crate) fn compile() {
        let folder = Path::new("kernels/cuda");
        println!("cargo:rerun-if-changed={}", folder.display());
        let mut modules: Vec<PathBuf> = std::fs::read_dir(folder)
            .expect("the kernels' folder")
            .map(|entry| entry.expect("a file of the kernels").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "cu"))
            .collect();
        modules.sort();

        let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
        let mut build = cc::Build::new();
        build
            .cpp(true)
            .std("c++17")
            .opt_level(2)
            .debug(false)
            .warnings(true)
            .extra_warnings(true);
        let mut names = Vec::new();
        for module in &modules {
            let stem = module.file_stem().expect("a name").to_string_lossy();
            // The C++ compiler goes by the extension.
            let source = out.join(format!("{stem}.cpp"));
            let path = std::fs::canonicalize(module).expect("the module's path");
            std::fs::write(&source, format!("#include \"{}\"\n", path.display()))
                .expect("a file in OUT_DIR");
            build.file(source);
            names.extend(kernels(module));
        }
        if let Err(error) = build.try_compile("proofmill_host_kernels") {
            panic!(
                "the CUDA kernels do not compile as host C++; the feature `host-kernels`, which tests \
                 switch on, needs a compiler of C++17 such as g++ or clang++, or its path in CXX: \
                 {error}"
            );
        }
        std::fs::write(out.join("host_kernels.rs"), table(&names)).expect("a file in OUT_DIR");
    }

    /// The names of a module's kernels: what its one macro makes, by `modules.cuh`.
    fn kernels(module: &Path) -> Vec<String> {
        let text = std::fs::read_to_string(module).expect("a module's text");
        let macros = std::fs::read_to_string(module.with_file_name("modules.cuh"))
            .expect("the text of modules.cuh");
        let call = text.lines().last().expect("a module's last line");
        let (name, module) = match call.split_once('(') {
            Some((name, rest)) => (name, rest.split([',', ')']).next().expect("a name")),
            None => (call, ""),
        };
        let definition = macros
            .split("#define ")
            .find(|definition| definition.starts_with(name))
            .expect("the module's macro in modules.cuh");
        definition
            .split("KERNEL(")
            .skip(1)
            .map(|kernel| {
                let name = kernel.split(',').next().expect("a kernel's name");
                name.replace("name##", module)
            })
            .collect()
    }

    /// Rust that declares the kernels, and finds one by its name.
    fn table(names: &[String]) -> String {
        let mut text = String::from(
            "#[allow(unsafe_code, reason = \"C functions\")]\nunsafe extern \"C\" {\n",
        );
        for name in names {
            writeln!(
                text,
                "    fn {name}(_: *const c_void, _: u32, _: u32, _: u32, _: bool) -> bool;"
            )
            .expect("text");
        }
        text += "}\n\nfn kernel(name: &str) -> Option<Kernel> {\n    Some(match name {\n";
        for name in names {
            writeln!(text, "        \"{name}\" => {name},").expect("text");
        }
        text += "        _ => return None,\n    })\n}\n";
        text
    }
}
