//! Decoding of messages, with an error that blames malformed ones on their sender.

use std::marker::PhantomData;
use std::sync::Arc;

use prost::Message;
use tonic::Status;
use tonic::codec::{BufferSettings, DecodeBuf};
use tonic_prost::ProstEncoder;

/// A codec like tonic's own, except that it answers a malformed message with INVALID_ARGUMENT. Tonic answers INTERNAL,
/// which would blame the server.
pub(crate) struct Codec<T, U>(PhantomData<(T, U)>);

/// The decoder of messages.
pub(crate) struct Decoder<U>(PhantomData<U>);

impl<T, U> Default for Codec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> tonic::codec::Codec for Codec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = Decoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::new(BufferSettings::default())
    }

    fn decoder(&mut self) -> Self::Decoder {
        Decoder(PhantomData)
    }
}

impl<U: Message + Default> tonic::codec::Decoder for Decoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        U::decode(bytes).map(Some).map_err(|error| {
            let mut status = Status::invalid_argument(format!("the message: {error}"));
            // A client knows by the cause that the error arose on its side, and not in the server.
            status.set_source(Arc::new(error));
            status
        })
    }
}
