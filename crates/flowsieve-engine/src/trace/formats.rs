//! The formats that are read. A new one is its file, a line among the modules and a line here.

use super::error::{ReadError, TraceErrorKind};
use super::format::{Class, Format};
use super::read_buffer::ReadBuffer;
use super::unreadable::looks_like;
use super::{cdns, dnstap, erf, eve, log_csv, pcap, pcapng, tsh, zeek};

/// All formats, in the order in which a stream is tried: those that need few bytes first, ERF
/// behind text since it has no mark, TSH last since it is never recognised.
pub(super) const FORMATS: &[&Format] = &[
    &pcap::FORMAT,
    &pcapng::FORMAT,
    #[cfg(feature = "toy")]
    &super::toycap::FORMAT,
    &dnstap::FORMAT,
    &cdns::FORMAT,
    &zeek::TSV,
    &zeek::JSON,
    &eve::FORMAT,
    &log_csv::FORMAT,
    &erf::FORMAT,
    &tsh::FORMAT,
];

/// Recognises the format of a stream, and its container, by the content, never by the name.
pub(super) fn recognise(
    buffer: &mut ReadBuffer,
) -> Result<(&'static Format, &'static str), ReadError> {
    let found = FORMATS.iter().find_map(|format| Some((*format, (format.recognise)(buffer)?)));
    if let Some(found) = found {
        return Ok(found);
    }
    let head = buffer.unread();
    let kind = if head.is_empty() {
        TraceErrorKind::Empty
    } else {
        TraceErrorKind::NotACapture { reason: reason(head) }
    };
    // A damaged compressed stream or a failing disk explains an unknown start better.
    buffer.raise_failure()?;
    Err(ReadError::at(0, kind))
}

/// Returns what a stream that cannot be read seems to be, and what to do about it.
fn reason(head: &[u8]) -> String {
    if let Some(remedy) = looks_like(head) {
        return remedy.to_owned();
    }
    if is_text(head) {
        let lines = words(|class| class == Class::TextLog);
        return format!("it is text; of text, {lines} can be read");
    }
    format!(
        "its first bytes belong to no known container; {} are recognised, TSH must be named with --input-format tsh",
        recognised_formats()
    )
}

fn is_text(head: &[u8]) -> bool {
    let start = &head[..head.len().min(512)];
    let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..);
    !start.is_empty() && start.iter().all(is_text) && std::str::from_utf8(start).is_ok()
}

/// Returns the formats that are recognised, for sentences: captures, then logs.
pub fn recognised_formats() -> String {
    let captures = words(|class| class == Class::Capture);
    let logs = words(|class| class != Class::Capture);
    format!("{captures}, {logs}")
}

/// TSH is never recognised, and tests list the toy only if they ask for it.
fn is_listed(format: &Format) -> bool {
    #[cfg(feature = "toy")]
    if format.words == "toycap" && std::env::var_os("FLOWSIEVE_TOY").is_none() {
        return false;
    }
    !format.words.is_empty()
}

/// Returns the names of the containers that are read, as results have them.
pub fn container_names() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().flat_map(|format| format.containers).copied()
}

/// Lists the formats with such a content that are recognised.
fn words(wanted: impl Fn(Class) -> bool) -> String {
    let formats = FORMATS.iter().filter(|format| wanted(format.class) && is_listed(format));
    let mut words: Vec<&str> = formats.map(|format| format.words).collect();
    words.dedup();
    words.join(", ")
}
