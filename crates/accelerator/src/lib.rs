//! Devices that multiply points and transform vectors, behind one interface: the CPU's kernels, and
//! CUDA cards.
//!
//! A [`Device`] keeps bases resident, takes [`DeviceJob`]s, and answers each with a [`Ticket`] that can be
//! polled, awaited, waited for or cancelled.
//!
//! ```
//! use ark_bls12_381::{Fr, G1Affine, G1Projective};
//! use ark_ec::AffineRepr;
//! use proofmill_accelerator::{Device, DeviceField, DeviceGroup, DeviceJob, cpu};
//!
//! let device = cpu()?;
//! let points = vec![G1Affine::generator(); 3];
//! let bases = device.load_bases(G1Projective::points(points), 0)?;
//! let scalars = Fr::scalars([1, 0, 4].map(Fr::from).to_vec());
//! let sum = device.submit(DeviceJob::Msm { bases, scalars })?.wait()?.into_sum::<G1Projective>()?;
//! assert_eq!(sum, G1Affine::generator() * Fr::from(5));
//! # Ok::<(), proofmill_accelerator::Error>(())
//! ```

pub mod conformance;
mod cost;
mod cpu;
mod cuda;
mod device;
mod discovery;
mod error;
mod group;
mod pool;
mod queue;
mod ticket;

pub use cost::Work;
pub use cpu::cpu;
pub use cuda::{cuda, cuda_cards};
#[cfg(feature = "host-kernels")]
pub use cuda::{host_cuda, poisoned_cuda};
pub use device::{BasesId, Capabilities, Device, DeviceJob, Outcome, TransformKind};
pub use discovery::{devices, user_cubin_directory};
pub use error::Error;
pub use group::{DeviceField, DeviceGroup, Group, Points, ScalarField, Scalars, Sum, Transform};
pub use pool::{Member, Pool};
pub use ticket::{Answer, Ticket, ticket};
