//! Services that every server offers beside its own: health and reflection.

use hyper::Uri;
use tonic_health::pb::FILE_DESCRIPTOR_SET as HEALTH;
use tonic_reflection::server::v1::{ServerReflection, ServerReflectionServer};

/// Most bytes of a message of health, reflection, and any call that needs no more.
pub(crate) const MESSAGE_MAX: usize = 64 << 10;

/// Whether a call is a single health check, which needs no token.
pub(crate) fn is_health_check(uri: &Uri) -> bool {
    uri.path() == "/grpc.health.v1.Health/Check"
}

/// The reflection service for `descriptors` and for health.
///
/// # Errors
///
/// The bytes are not valid descriptors.
pub(crate) fn reflection(
    descriptors: &[u8],
) -> Result<ServerReflectionServer<impl ServerReflection>, tonic_reflection::server::Error> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(descriptors)
        .register_encoded_file_descriptor_set(HEALTH)
        .build_v1()
}
