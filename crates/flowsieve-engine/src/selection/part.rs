//! A selection as plain data, for what outlives a run.

use super::{Selection, TimeBound};
use crate::capture_filter::{CaptureFilter, FilterError};
use crate::decode::Tunnel;
use serde::{Deserialize, Serialize};

/// Which packets took part.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct SelectedPart {
    /// The capture filter that they match.
    #[serde(rename = "where")]
    pub expression: Option<String>,
    /// Time from which on they came, in nanoseconds since the epoch.
    pub from_ns: Option<i64>,
    /// Time before which they came.
    pub to_ns: Option<i64>,
}

impl From<&Selection> for SelectedPart {
    /// Times that are relative to captures are left out: see [`Selection::resolved`].
    fn from(selection: &Selection) -> Self {
        let filter = selection.capture_filter.as_ref();
        Self {
            expression: filter.map(|filter| filter.text().to_owned()),
            from_ns: selection.from.and_then(TimeBound::time_ns),
            to_ns: selection.to.and_then(TimeBound::time_ns),
        }
    }
}

impl SelectedPart {
    /// Returns the selection of these packets; its capture filter asks this IP header.
    ///
    /// # Errors
    ///
    /// The expression is no capture filter.
    pub fn selection(&self, tunnel: Tunnel) -> Result<Selection, FilterError> {
        let filter = self.expression.as_deref();
        let filter = filter.map(|text| CaptureFilter::parse(text, tunnel));
        Ok(Selection {
            capture_filter: filter.transpose()?,
            from: self.from_ns.map(TimeBound::At),
            to: self.to_ns.map(TimeBound::At),
            ..Selection::default()
        })
    }

    /// Returns the part that holds both; `None` if their expressions differ. The range of time
    /// begins with the earlier and ends with the later.
    pub fn united(&self, other: &Self) -> Option<Self> {
        (self.expression == other.expression).then(|| Self {
            expression: self.expression.clone(),
            from_ns: self.from_ns.zip(other.from_ns).map(|(a, b)| a.min(b)),
            to_ns: self.to_ns.zip(other.to_ns).map(|(a, b)| a.max(b)),
        })
    }
}
