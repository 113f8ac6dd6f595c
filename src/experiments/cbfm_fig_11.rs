//! CBFM paper, Fig. 11: memory of a BFM and of a CBFM with one cut pair, by the number of
//! attributes.

use super::result::{Chart, ChartAxis, ChartScale, Curve, CurveKind, Measured};
use super::{Findings, Found, Settings};
use crate::filters::matrix_sizing::{attribute_size, cells, cells_of_disjoint_cuts};

const RATE: f64 = 0.1;
const ELEMENTS: f64 = 100.0;

pub(super) fn run(_: &Settings) -> Found {
    let size = attribute_size(RATE, ELEMENTS).floor();
    let mut found = Findings::new([format!(
        "n = {ELEMENTS}, ε = {RATE}, so m = {size}. By formula (m+1)^d, and (4) for the cut; counted by adding up the combinations. The figure has no numbers; its text says two orders."
    )]);
    let mut curves = memory_curves();
    for attributes in 1..=4 {
        let [bfm, cbfm] = memory(size, attributes, &mut found, &mut curves);
        if attributes > 2 {
            found
                .cell(format!("d = {attributes}, BFM / CBFM"))
                .orders(2)
                .formula((size + 1.0).powi(2) / (2.0 * size + 1.0))
                .measured(Measured::exactly(bfm / cbfm))
                .because("\"two orders\"");
        }
    }
    found.charts.push(Chart {
        name: "cbfm-fig-11".into(),
        title: "Memory by the number of attributes, n = 100, ε = 0.1".into(),
        caption: "One cut pair from three attributes on.".into(),
        x: ChartAxis::new("attributes (d)", ChartScale::Linear),
        y: ChartAxis::new("memory", ChartScale::Bytes),
        curves: curves.into(),
    });
    Ok(found)
}

/// The curves of memory by the number of attributes, still without points.
pub(super) fn memory_curves() -> [Curve; 2] {
    ["BFM", "CBFM"].map(|name| Curve::new(name, CurveKind::Measured, Vec::new()))
}

/// The bytes of a BFM with `size` positions an attribute, and of a CBFM with the cut {1,2} from
/// three attributes on: cells of both, points of their curves, and the bytes as counted.
pub(super) fn memory(
    size: f64,
    attributes: u32,
    found: &mut Findings,
    curves: &mut [Curve; 2],
) -> [f64; 2] {
    let is_cut = attributes > 2;
    let cuts: [&[u32]; 2] = [&[], if is_cut { &[0b11] } else { &[] }];
    let cut_sizes: &[u32] = if is_cut { &[2] } else { &[] };
    let whole = (size + 1.0).powi(attributes as i32);
    let formulas = [whole, cells_of_disjoint_cuts(size, attributes, cut_sizes)];
    std::array::from_fn(|place| {
        let cells = cells(&vec![size as u64; attributes as usize], cuts[place]);
        let counted = cells.map_or(f64::INFINITY, |cells| cells as f64 / 8.0);
        let curve = &mut curves[place];
        found
            .cell(format!("d = {attributes}, {}", curve.name))
            .unit("bytes")
            .formula(formulas[place] / 8.0)
            .measured(Measured::exactly(counted));
        curve.points.push((f64::from(attributes), counted, 0.0));
        counted
    })
}
