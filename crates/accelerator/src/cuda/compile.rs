//! Kernels compiled at run time, by NVRTC.

use std::ffi::{CString, c_char};

use cudarc::nvrtc::{result, sys};

use super::modules::Module;

/// A module for one architecture.
pub(crate) struct Compiled {
    /// The compiled code, as a card loads it.
    pub(crate) cubin: Vec<u8>,
    /// The compiler's log: registers and spills of each kernel.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the register budget's test reads it")
    )]
    pub(crate) log: String,
}

/// Compiles a module for an architecture such as `sm_90`; it takes up to half a minute. The error is a
/// message for the user.
#[expect(unsafe_code, reason = "a foreign library")]
pub(crate) fn compile(module: Module, architecture: &str) -> Result<Compiled, String> {
    // SAFETY: the call loads the library if it exists, which runs NVIDIA's own initialisers.
    if !unsafe { sys::is_culib_present() } {
        return Err(
            "NVRTC is not here: install CUDA's libnvrtc, or the PyPI package \
                    nvidia-cuda-nvrtc with its folder in LD_LIBRARY_PATH"
                .into(),
        );
    }
    let source = CString::new(module.source()).map_err(|error| error.to_string())?;
    let name = CString::new(format!("{module}.cu")).map_err(|error| error.to_string())?;
    let failed = |error: result::NvrtcError| format!("NVRTC: {error}");
    let program = Program(result::create_program(&source, Some(&name)).map_err(failed)?);
    let options = [
        format!("--gpu-architecture={architecture}"),
        "--std=c++17".into(),
        "--ptxas-options=-v".into(),
    ];
    // SAFETY: here and below the program was created above and lives.
    let compiled = unsafe { result::compile_program(program.0, &options) };
    let log = program.log();
    compiled.map_err(|error| format!("{module} for {architecture}: {error}: {log}"))?;
    Ok(Compiled {
        cubin: program.cubin().map_err(failed)?,
        log,
    })
}

/// A handle of NVRTC, which is destroyed when this is dropped.
struct Program(sys::nvrtcProgram);

// === impl Program ===

impl Program {
    #[expect(unsafe_code, reason = "a foreign library")]
    fn log(&self) -> String {
        // SAFETY: the program is not destroyed before `self` is dropped.
        let log = unsafe { result::get_program_log(self.0) }.unwrap_or_default();
        let bytes: Vec<u8> = log.iter().map(|&byte| byte as u8).collect();
        String::from_utf8_lossy(&bytes)
            .trim_end_matches('\0')
            .to_owned()
    }

    #[expect(unsafe_code, reason = "a foreign library")]
    fn cubin(&self) -> Result<Vec<u8>, result::NvrtcError> {
        let mut size = 0;
        // SAFETY: the program lives, and the buffer has the size that NVRTC says.
        unsafe {
            sys::nvrtcGetCUBINSize(self.0, &raw mut size).result()?;
            let mut cubin = vec![0_u8; size];
            sys::nvrtcGetCUBIN(self.0, cubin.as_mut_ptr().cast::<c_char>()).result()?;
            Ok(cubin)
        }
    }
}

impl Drop for Program {
    #[expect(unsafe_code, reason = "a foreign library")]
    fn drop(&mut self) {
        // SAFETY: the program was created once and is destroyed once. An error needs no handling.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}

#[cfg(test)]
#[path = "register_budget.rs"]
mod register_budget;

#[cfg(test)]
mod tests {
    use super::{Module, compile};

    #[test]
    fn compilation_succeeds_or_says_what_to_install() {
        match compile(Module::Sort, "sm_90") {
            Ok(compiled) => assert!(compiled.cubin.starts_with(b"\x7fELF")),
            Err(reason) => assert!(reason.contains("nvidia-cuda-nvrtc"), "{reason}"),
        }
    }

    #[test]
    fn an_unknown_architecture_is_an_error() {
        assert!(compile(Module::Sort, "sm_1").is_err());
    }
}
