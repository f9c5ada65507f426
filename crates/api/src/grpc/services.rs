//! What every server offers beside its own calls.

use hyper::Uri;
use tonic_health::pb::FILE_DESCRIPTOR_SET as HEALTH;
use tonic_reflection::server::v1::{ServerReflection, ServerReflectionServer};

/// Bytes of a message of health, of reflection, and of any call that needs no more.
pub(crate) const MESSAGE_MAX: usize = 64 << 10;

/// Whether a call asks how a server is, once: that needs no token, and tells nothing else.
pub(crate) fn is_health_check(uri: &Uri) -> bool {
    uri.path() == "/grpc.health.v1.Health/Check"
}

/// Tells of the services in `descriptors`, and of health.
///
/// # Errors
///
/// If they are no descriptors.
pub(crate) fn reflection(
    descriptors: &[u8],
) -> Result<ServerReflectionServer<impl ServerReflection>, tonic_reflection::server::Error> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(descriptors)
        .register_encoded_file_descriptor_set(HEALTH)
        .build_v1()
}
