//! Status codes of completions.

use std::fmt;

/// Status of a completion: the 15 bits above the phase bit. Code in 7:0, type in 10:8, "do not retry" in 14.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Status(u16);

const DO_NOT_RETRY: u16 = 1 << 14;

/// Defines the statuses by name: type, code, "do not retry", and their text.
macro_rules! statuses {
    ($($name:ident = $kind:literal, $code:literal, $no_retry:literal, $text:literal;)*) => {
        impl Status {
            $(#[doc = concat!("Type ", stringify!($kind), "h, code ", stringify!($code), ": ", $text, ".")]
            pub const $name: Self = Self($kind << 8 | $code | if $no_retry { DO_NOT_RETRY } else { 0 });)*

            /// Text of the status; `None` for a code that is not in this list.
            pub const fn text(self) -> Option<&'static str> {
                match (self.kind(), self.code()) {
                    $(($kind, $code) => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

statuses! {
    SUCCESS = 0, 0x00, false, "success";
    INVALID_OPCODE = 0, 0x01, true, "invalid command opcode";
    INVALID_FIELD = 0, 0x02, true, "invalid field in command";
    COMMAND_ID_CONFLICT = 0, 0x03, true, "command identifier conflict";
    DATA_TRANSFER_ERROR = 0, 0x04, true, "data transfer error";
    INTERNAL_ERROR = 0, 0x06, true, "internal error";
    ABORT_REQUESTED = 0, 0x07, true, "command abort requested";
    ABORTED_SQ_DELETION = 0, 0x08, true, "command aborted due to submission queue deletion";
    INVALID_NAMESPACE = 0, 0x0b, true, "invalid namespace or format";
    COMMAND_SEQUENCE_ERROR = 0, 0x0c, true, "command sequence error";
    DATA_SGL_LENGTH_INVALID = 0, 0x0f, true, "data SGL length invalid";
    SGL_TYPE_INVALID = 0, 0x11, true, "SGL descriptor type invalid";
    PRP_OFFSET_INVALID = 0, 0x13, true, "PRP offset invalid";
    SGL_OFFSET_INVALID = 0, 0x16, true, "SGL offset invalid";
    KEEP_ALIVE_TIMEOUT_INVALID = 0, 0x1a, true, "keep alive timeout invalid";
    TRANSIENT_TRANSPORT_ERROR = 0, 0x22, false, "transient transport error";
    LBA_OUT_OF_RANGE = 0, 0x80, true, "address out of range";

    CQ_INVALID = 1, 0x00, true, "completion queue invalid";
    INVALID_QUEUE_ID = 1, 0x01, true, "invalid queue identifier";
    INVALID_QUEUE_SIZE = 1, 0x02, true, "invalid queue size";
    EVENT_LIMIT_EXCEEDED = 1, 0x05, true, "asynchronous event request limit exceeded";
    INVALID_VECTOR = 1, 0x08, true, "invalid interrupt vector";
    INVALID_LOG_PAGE = 1, 0x09, true, "invalid log page";
    INVALID_QUEUE_DELETION = 1, 0x0c, true, "invalid queue deletion";
    FEATURE_NOT_SAVEABLE = 1, 0x0d, true, "feature identifier not saveable";
    INVALID_COMMAND_SET = 1, 0x2c, true, "invalid I/O command set";

    CONNECT_FORMAT = 1, 0x80, true, "connect: incompatible format";
    CONNECT_BUSY = 1, 0x81, false, "connect: controller busy";
    CONNECT_INVALID_PARAMETERS = 1, 0x82, true, "connect: invalid parameters";
    CONNECT_INVALID_HOST = 1, 0x84, true, "connect: invalid host";

    INVALID_MEMORY_NAMESPACE = 1, 0x8b, true, "invalid memory namespace";
    INVALID_RANGE_SET = 1, 0x8c, true, "invalid memory range set";
    INVALID_RANGE_SET_ID = 1, 0x8d, true, "invalid memory range set identifier";
    INVALID_PROGRAM_INDEX = 1, 0x8f, true, "invalid program index";
    RANGES_EXCEEDED = 1, 0x91, true, "maximum memory ranges exceeded";
    RANGE_SETS_EXCEEDED = 1, 0x92, true, "maximum memory range sets exceeded";
    RANGE_SET_IN_USE = 1, 0x95, true, "memory range set in use";
    OVERLAPPING_RANGES = 1, 0x97, true, "overlapping memory ranges";
    PROGRAM_NOT_ACTIVATED = 1, 0x98, true, "program not activated";
    PROGRAM_IN_USE = 1, 0x99, true, "program in use";
    PROGRAM_NOT_DOWNLOADABLE = 1, 0x9a, true, "program index not downloadable";

    JOB_QUEUE_FULL = 1, 0xc0, false, "job queue full";
    CORE_ERROR = 1, 0xc1, true, "core error";
    JOB_TIMED_OUT = 1, 0xc2, false, "job timed out";
    JOB_CANCELLED = 1, 0xc3, true, "job cancelled";
    UNKNOWN_JOB = 1, 0xc4, true, "unknown job";
    JOB_WAITED_FOR = 1, 0xc5, true, "job already waited for";
    UNKNOWN_BASE_SET = 1, 0xc6, true, "unknown base set";
    UNSUPPORTED_JOB = 1, 0xc7, true, "unsupported job";
    INVALID_SHAPE = 1, 0xc8, true, "invalid window or levels";
    INVALID_COUNT = 1, 0xc9, true, "invalid count";
    OVERLAPPING_AREAS = 1, 0xca, true, "overlapping areas";
    BASE_SET_IN_USE = 1, 0xcb, true, "base set in use";
}

// === impl Status ===

impl Status {
    /// From the completion's field without its phase bit.
    pub const fn from_field(field: u16) -> Self {
        Self(field & 0x7fff)
    }

    /// The completion's field without its phase bit.
    pub const fn field(self) -> u16 {
        self.0
    }

    /// Type: 0 generic, 1 command specific.
    pub const fn kind(self) -> u16 {
        self.0 >> 8 & 7
    }

    /// Code within the type.
    pub const fn code(self) -> u16 {
        self.0 & 0xff
    }

    /// Type and code alone, as the job table keeps them.
    pub const fn type_and_code(self) -> u16 {
        self.0 & 0x7ff
    }

    /// Whether the command succeeded.
    pub const fn is_success(self) -> bool {
        self.type_and_code() == 0
    }

    /// Whether a retry is pointless.
    pub const fn do_not_retry(self) -> bool {
        self.0 & DO_NOT_RETRY != 0
    }

    /// Whether type and code are those of `other`.
    pub const fn is(self, other: Self) -> bool {
        self.type_and_code() == other.type_and_code()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text() {
            Some(text) => write!(f, "{text} ({:x}, {:02x})", self.kind(), self.code()),
            None => write!(f, "status ({:x}, {:02x})", self.kind(), self.code()),
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of Linux' `enum { NVME_SC_… }`, where the type is in bits 10:8.
    #[test]
    fn codes_are_those_of_the_public_headers() {
        let known = [
            (Status::INVALID_OPCODE, 0x001),
            (Status::COMMAND_ID_CONFLICT, 0x003),
            (Status::INVALID_NAMESPACE, 0x00b),
            (Status::COMMAND_SEQUENCE_ERROR, 0x00c),
            (Status::TRANSIENT_TRANSPORT_ERROR, 0x022),
            (Status::LBA_OUT_OF_RANGE, 0x080),
            (Status::INVALID_QUEUE_ID, 0x101),
            (Status::EVENT_LIMIT_EXCEEDED, 0x105),
            (Status::INVALID_LOG_PAGE, 0x109),
            (Status::FEATURE_NOT_SAVEABLE, 0x10d),
            (Status::INVALID_COMMAND_SET, 0x12c),
            (Status::CONNECT_BUSY, 0x181),
            (Status::CONNECT_INVALID_PARAMETERS, 0x182),
            (Status::CONNECT_INVALID_HOST, 0x184),
        ];
        for (status, code) in known {
            assert_eq!(status.type_and_code(), code, "{status}");
        }
        assert!(Status::INVALID_FIELD.do_not_retry());
        assert!(!Status::JOB_QUEUE_FULL.do_not_retry());
        assert_eq!(Status::from_field(0x2b).to_string(), "status (0, 2b)");
    }
}
