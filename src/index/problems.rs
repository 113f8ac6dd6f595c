//! Problems of reading an index, for people.

use super::IndexError;
use super::catalog::CaptureEntry;
use flowsieve_engine::internal::Shown;
use std::path::Path;

/// Most sentences that are kept: a hostile index can have a problem in each of its files.
const MOST_PROBLEMS: usize = 1000;

/// Problems of reading, one sentence each.
#[derive(Default)]
pub(super) struct Problems {
    sentences: Vec<String>,
    /// Those that are not kept.
    others: u64,
    /// Whether a file did not exist: a writer may have replaced the catalogue.
    pub(super) is_missing: bool,
}

impl Problems {
    /// Adds a problem, but for the same one again.
    pub(super) fn note(&mut self, problem: String) {
        if self.sentences.len() == MOST_PROBLEMS {
            self.others += 1;
        } else if self.sentences.last() != Some(&problem) {
            self.sentences.push(problem);
        }
    }

    /// Adds a problem with a file that belongs to these captures.
    pub(super) fn note_file(
        &mut self,
        error: &IndexError,
        archive: &Path,
        captures: &[CaptureEntry],
    ) {
        self.is_missing |= error.is_missing_file();
        self.note(with_captures(error, archive, captures));
    }

    pub(super) fn into_sentences(mut self) -> Vec<String> {
        if self.others > 0 {
            self.sentences.push(format!(
                "files of the index have more problems than are listed ({} more); mend these first",
                self.others
            ));
        }
        self.sentences
    }
}

/// Returns the sentence, with the captures to which a damaged file belongs, and the command that
/// repairs it.
fn with_captures(error: &IndexError, archive: &Path, captures: &[CaptureEntry]) -> String {
    if !error.is_damage() {
        return error.to_string();
    }
    let belongs = match captures {
        [] => String::new(),
        [entry] => format!("; it belongs to {}", entry.path.shown()),
        [first, others @ ..] => {
            format!("; it belongs to {} and {} more", first.path.shown(), others.len())
        }
    };
    format!("{error}{belongs}; `flowsieve index repair {}` makes it again", archive.shown())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_beyond_the_first_are_counted() {
        let mut problems = Problems::default();
        for number in 0..1234 {
            problems.note(format!("file {number} is damaged"));
            problems.note(format!("file {number} is damaged"));
        }
        let sentences = problems.into_sentences();
        assert_eq!(sentences.len(), 1 + MOST_PROBLEMS);
        assert!(sentences[MOST_PROBLEMS].contains("more problems"), "{sentences:?}");
    }
}
