//! The list of words of the course report, or a made-up one.

use super::Settings;
use super::result::ExperimentError;
use flowsieve_engine::internal::Shown;
use std::fs;

/// Words of the report's list.
pub(super) const WORDS: usize = 466_550;

/// Returns the distinct words of the list in the settings, and a sentence on where they come from;
/// without a list, as many generated words as the report has.
pub(super) fn words(settings: &Settings) -> Result<(Vec<Vec<u8>>, String), ExperimentError> {
    let most = settings.scale.pick(5_000, WORDS as u64, WORDS as u64) as usize;
    let Some(path) = &settings.words else {
        let words = (0..most).map(|number| format!("word-{number:06}").into_bytes());
        return Ok((
            words.collect(),
            format!(
                "No list of words was given (FLOWSIEVE_WORDS): these are {most} generated words, not the report's."
            ),
        ));
    };
    let text = fs::read(path).map_err(|error| {
        ExperimentError(format!(
            "{}: the list of words cannot be read ({error}); name a text file with one word a line in FLOWSIEVE_WORDS, or unset it",
            path.shown()
        ))
    })?;
    let mut seen = std::collections::HashSet::new();
    let words: Vec<Vec<u8>> = text
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|word| !word.is_empty() && seen.insert(*word))
        .take(most)
        .map(<[u8]>::to_vec)
        .collect();
    let from = format!("A list of words was given: {} distinct ones.", words.len());
    Ok((words, from))
}
