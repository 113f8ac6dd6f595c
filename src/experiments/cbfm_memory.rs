//! CBFM paper: memory of a BFM with 16 positions an attribute, for 2 to 8 attributes.

use super::cbfm_fig_11::{memory, memory_curves};
use super::result::{Chart, ChartAxis, ChartScale};
use super::{Findings, Found, Settings};

pub(super) const SIZE: f64 = 16.0;

pub(super) fn run(_: &Settings) -> Found {
    let mut found = Findings::new([
        "m = 16: a BFM has 17^d cells; beside it a CBFM with the cut {1,2}, from three attributes on. The text speaks of data of three attributes, yet d runs to 8. The figure has no numbers.".into(),
    ]);
    let mut curves = memory_curves();
    for attributes in 2..=8 {
        memory(SIZE, attributes, &mut found, &mut curves);
    }
    found.charts.push(Chart {
        name: "cbfm-memory".into(),
        title: "Memory with 16 positions an attribute".into(),
        caption: "17^d bits for the BFM; one cut takes a factor of 17² / 33 = 8.8.".into(),
        x: ChartAxis::new("attributes (d)", ChartScale::Linear),
        y: ChartAxis::new("memory", ChartScale::Bytes),
        curves: curves.into(),
    });
    Ok(found)
}
