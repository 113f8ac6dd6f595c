//! Catalogues of the first two versions, which held all captures themselves. They become a segment.

use super::catalog::{CaptureEntry, Catalog, Node, Numbered, Segment, SegmentPart, Settings};
use super::path_text;
use serde::Deserialize;
use std::path::PathBuf;

/// Their names.
pub(super) const SCHEMAS: [&str; 2] = ["flowsieve.index/1", "flowsieve.index/2"];

#[derive(Deserialize)]
struct Older {
    generation: u64,
    next: u64,
    settings: Settings,
    nodes: Vec<OlderNode>,
    captures: Vec<CaptureEntry>,
}

#[derive(Deserialize)]
struct OlderNode {
    #[serde(with = "path_text")]
    folder: PathBuf,
    filter: Option<Numbered>,
    region_filters: Vec<Numbered>,
}

/// The catalogue with this text.
pub(super) fn catalog(text: &str) -> serde_json::Result<Catalog> {
    let Older { generation, next, settings, nodes, captures } = serde_json::from_str(text)?;
    let (mut folders, mut parts) = (Vec::new(), Vec::new());
    for (node, older) in nodes.into_iter().enumerate() {
        folders.push(Node { folder: older.folder });
        // Without a filter there are no regions.
        let Some(filter) = older.filter else { continue };
        parts.push(SegmentPart {
            node,
            filter,
            region_filters: older.region_filters,
            ..SegmentPart::default()
        });
    }
    let mut segment = Segment {
        file: Numbered::default(),
        read: None,
        captures: 0,
        captures_in_part: 0,
        start_ns: 0,
        end_ns: 0,
        parts,
    };
    segment.count(&captures);
    segment.parts.retain(|part| part.regions > 0);
    segment.read = Some(captures);
    let is_empty = segment.captures == 0;
    Ok(Catalog {
        generation,
        next,
        settings,
        nodes: folders,
        segments: if is_empty { Vec::new() } else { vec![segment] },
    })
}
