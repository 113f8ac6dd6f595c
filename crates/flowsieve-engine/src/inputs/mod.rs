//! Inputs as one trace: opened when they are due and merged by the time of their packets, whatever
//! becomes of these.
//!
//! | file | what it does |
//! |---|---|
//! | `merge` | the input with the earliest packet goes on, up to the packet of another one |
//! | `order` | packets of several inputs, mixed in time, put in order |
//! | `records` | an input read in the caller's thread, with all that a writer of captures needs |
//! | `feed` | an input whose packets become batches, in threads of its own or in the caller's |
//! | `batch` | what such batches are, and how they are made |
//! | `segments` | one large pcap file made into batches at several places at once |
//! | `error` | why a run has no result |
//! | `results` | what became of each input, and who hears of progress |

mod batch;
mod clock;
mod error;
mod feed;
mod merge;
mod order;
mod records;
mod results;
mod segments;

pub(crate) use batch::{Batch, BatchBuilder, read_batch};
pub(crate) use clock::{A_WHILE, CaptureClock, PacketClock};
pub use error::{PlanError, RunError};
pub(crate) use feed::{Feed, is_read_in_segments};
pub use merge::{Input, Merge};
pub(crate) use merge::{PacketConsumer, Together};
pub use records::RecordInput;
pub use results::{InputResult, Watch};
