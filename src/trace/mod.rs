//! Ground: where packets come from. Containers and decompression end here; what leaves is bytes
//! with a time, a length and a link type.

mod error;
mod packet;

pub use error::{TraceError, TraceErrorKind};
pub use packet::{DnsLogBatch, DnsLogEntry, LinkType, PacketRef, TraceBatch};
