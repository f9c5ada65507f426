//! `proofmill doctor`

use clap::Args;
use proofmill_api::engine::Address;

use super::engine::CredentialArgs;
use crate::devices::Devices;

const EXAMPLES: &str = "\
Examples:
  proofmill doctor            the devices, and the time of a product and a transform on each
  proofmill doctor --quick    without measuring
  proofmill doctor --json | jq '.devices[] | select(.works | not) | .why'
  proofmill doctor --devices nvme:127.0.0.1:4420    a ZKPU too, which no other host may use
  proofmill doctor --engine unix:engine/engine.sock an engine's devices, and why some are fenced

A CUDA card needs NVIDIA's driver (libcuda, for CUDA 12 or newer) and NVRTC (libnvrtc), which
compiles the kernels at their first use. That takes some minutes; the compiled kernels are kept in
`proofmill/cubins` of $XDG_CACHE_HOME, or of ~/.cache. NVRTC comes with the CUDA toolkit, and by
itself from PyPI:
  pip install --target DIR nvidia-cuda-nvrtc
  LD_LIBRARY_PATH=DIR/nvidia/cu13/lib proofmill doctor

Exit codes: 0 at least one device works; 1 no device works; 2 the command line is wrong.";

/// `proofmill doctor`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Doctor {
    /// Skip the measurements, and do not try to compile a card's kernels.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Look at these devices too, such as `nvme:127.0.0.1:4420`. Cards and processors are always looked at.
    #[arg(long, value_name = "DEVICES")]
    pub(crate) devices: Option<Devices>,
    /// Ask this engine for its devices too: unix:PATH, http://HOST:PORT or https://HOST:PORT.
    #[arg(long, value_name = "ADDRESS", help_heading = "Engine")]
    pub(crate) engine: Option<Address>,
    #[command(flatten)]
    pub(crate) credentials: CredentialArgs,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
