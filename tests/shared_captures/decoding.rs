//! Compares the decoder's fast path for common frames with its general path.

use crate::library::decode_paths::compare_all_below;
use std::path::Path;

pub(crate) fn the_short_path_gives_the_answer_of_the_general_path(folder: &Path) {
    let frames = compare_all_below(folder);
    assert!(frames > 300_000, "{frames} frames");
}
