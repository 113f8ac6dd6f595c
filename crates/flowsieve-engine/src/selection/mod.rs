//! Which packets of the captures take part: those that a capture filter lets through, in a range of
//! time.
//!
//! A [`Selection`] is part of a plan. It works below everything else, on the packets that a reader
//! yields, so nothing after it sees the packets that are left out.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test that panics has failed"))]

mod bound;
mod choose;
mod part;

pub use bound::{TimeBound, TimeRangeError};
#[doc(hidden)]
pub use part::SelectedPart;

use crate::capture_filter::CaptureFilter;
use crate::trace::{InputFormat, Select, Source};
use crate::zone::Zone;
use choose::Choose;
use std::ops::Range;
use std::sync::Arc;

/// The packets that take part in a run; by default all of them.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Lets packets through.
    pub capture_filter: Option<CaptureFilter>,
    /// Time from which on packets take part.
    pub from: Option<TimeBound>,
    /// Time before which they take part.
    pub to: Option<TimeBound>,
    /// Zone in which results show times; it does not change which packets take part.
    pub zone: Zone,
    /// Fewest bytes of a packet that takes part.
    #[cfg(feature = "toy")]
    pub toy_least: u32,
}

impl Selection {
    /// Whether all packets take part.
    #[doc(hidden)]
    pub fn is_everything(&self) -> bool {
        #[cfg(feature = "toy")]
        if self.toy_least > 0 {
            return false;
        }
        self.capture_filter.is_none() && self.from.is_none() && self.to.is_none()
    }

    /// Returns the filter of packets, `None` if all of them take part. Captures of one run share it.
    #[doc(hidden)]
    pub fn select(&self) -> Option<Arc<dyn Select>> {
        (!self.is_everything()).then(|| Arc::new(Choose::new(self)) as Arc<dyn Select>)
    }

    /// Restricts these inputs to the packets that take part.
    pub(crate) fn of<S: Clone + Into<Source>>(
        &self,
        sources: &[S],
        format: InputFormat,
    ) -> Vec<Source> {
        let sources = sources.iter().cloned().map(Into::into);
        let Some(select) = self.select() else { return sources.collect() };
        let times_ns = self.times_ns();
        let selected = sources.map(|source: Source| {
            let source = source.selected_by(Arc::clone(&select));
            match &times_ns {
                Some(times_ns) => source.within_times(times_ns, format),
                None => source,
            }
        });
        selected.collect()
    }

    /// The range of time, if there is one and it is known.
    fn times_ns(&self) -> Option<Range<i64>> {
        let time =
            |bound: Option<TimeBound>, without| bound.map_or(Some(without), TimeBound::time_ns);
        let range = time(self.from, i64::MIN)?..time(self.to, i64::MAX)?;
        (self.from.is_some() || self.to.is_some()).then_some(range)
    }
}
