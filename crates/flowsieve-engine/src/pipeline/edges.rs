//! Which slices a trace covers only in part: the first and the last one, unless the trace is known
//! to begin or end at their boundary.

use super::plan::Slicing;
use super::time_slice::{Align, SliceGrid};
use crate::selection::{Selection, TimeBound};

/// Known beginning and end of a trace, beyond its packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Edges {
    /// Time at which it begins.
    begin_ns: Option<i64>,
    /// Time at which it ends; `None` also for an interrupted run.
    end_ns: Option<i64>,
    /// There is one slice, which begins and ends with the trace.
    one_slice: bool,
}

impl Edges {
    /// The edges of a selection of packets: a range of time counts as covered, and slices that begin
    /// with the first packet begin with the trace.
    pub(crate) fn new(slicing: Slicing, selection: &Selection, grid: SliceGrid) -> Self {
        Self {
            begin_ns: match slicing.align {
                Align::First => Some(grid.origin_ns()),
                _ => selection.from.and_then(TimeBound::time_ns),
            },
            end_ns: selection.to.and_then(TimeBound::time_ns),
            one_slice: slicing.width_ns.is_none(),
        }
    }

    /// Whether the trace covers the slice, or window, of these bounds only in part. `first_ns` is
    /// where its first slice begins; `last` says whether the trace ends in this one, and whether it
    /// was cut off there.
    pub(crate) fn is_partial(
        self,
        (start_ns, end_ns): (i64, i64),
        first_ns: i64,
        last: Option<Cut>,
    ) -> bool {
        if self.one_slice {
            return last == Some(Cut::Interrupted);
        }
        let begins = start_ns > first_ns || self.begin_ns == Some(start_ns);
        let ends = match last {
            None => true,
            Some(Cut::AtEnd) => self.end_ns == Some(end_ns),
            Some(Cut::Interrupted) => false,
        };
        !(begins && ends)
    }
}

/// How a trace ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cut {
    /// All inputs were read.
    AtEnd,
    /// There was more to read.
    Interrupted,
}

impl Cut {
    pub(crate) const fn new(interrupted: bool) -> Self {
        if interrupted { Self::Interrupted } else { Self::AtEnd }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(align: Align, from: Option<i64>, to: Option<i64>) -> Edges {
        let selection = Selection {
            from: from.map(TimeBound::At),
            to: to.map(TimeBound::At),
            ..Selection::default()
        };
        let slicing = Slicing { width_ns: Some(10), align };
        Edges::new(slicing, &selection, SliceGrid::new(Some(10), align, 3))
    }

    #[test]
    fn the_first_and_the_last_slice_are_partial_unless_their_boundary_is_known() {
        let all = edges(Align::Epoch, None, None);
        assert!(all.is_partial((0, 10), 0, None));
        assert!(!all.is_partial((10, 20), 0, None));
        assert!(all.is_partial((20, 30), 0, Some(Cut::AtEnd)));
        let chosen = edges(Align::Epoch, Some(0), Some(30));
        assert!(!chosen.is_partial((0, 10), 0, None));
        assert!(!chosen.is_partial((20, 30), 0, Some(Cut::AtEnd)));
        assert!(chosen.is_partial((20, 30), 0, Some(Cut::Interrupted)));
        // The capture begins later than asked for, and ends earlier.
        assert!(chosen.is_partial((10, 20), 10, None));
        assert!(chosen.is_partial((10, 20), 0, Some(Cut::AtEnd)));
        let first = edges(Align::First, None, None);
        assert!(!first.is_partial((3, 13), 3, None));
    }

    #[test]
    fn windows_that_begin_before_the_trace_are_partial() {
        let all = edges(Align::Epoch, None, None);
        assert!(all.is_partial((-20, 10), 0, None));
        assert!(all.is_partial((0, 30), 0, None));
        assert!(!all.is_partial((10, 40), 0, None));
    }

    #[test]
    fn one_slice_is_partial_only_after_an_interruption() {
        let one = Edges { one_slice: true, ..Edges::default() };
        assert!(!one.is_partial((3, 17), 3, Some(Cut::AtEnd)));
        assert!(one.is_partial((3, 17), 3, Some(Cut::Interrupted)));
    }
}
