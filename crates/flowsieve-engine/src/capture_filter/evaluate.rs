//! Runs the program of a filter on a packet or on a record of a log.

use super::program::{ACCEPT, Direction, Header, Program, Relation, STACK_MAX, Step, Test};

/// A packet or record that a filter is run on. The answer `None` means that a byte which is needed
/// is missing, and nothing matches.
pub(super) trait Subject {
    /// Returns the answer to any test but [`Test::Relation`].
    fn test(&mut self, test: &Test) -> Option<bool>;
    /// Returns the length on the wire.
    fn length(&self) -> Option<u32>;
    /// Whether there is such a header.
    fn has(&mut self, header: Header) -> Option<bool>;
    /// Returns the number of one, two or four bytes at an offset in a header that is there.
    fn load(&mut self, header: Header, offset: u32, size: u8) -> Option<u32>;
}

impl Program {
    /// Whether a subject matches.
    #[inline]
    pub(super) fn run(&self, subject: &mut impl Subject) -> bool {
        let mut at = if self.ops.is_empty() { ACCEPT } else { 0 };
        while let Some(op) = self.ops.get(at as usize) {
            let answer = match &op.test {
                Test::Relation(relation) => self.relation(relation, subject),
                test => subject.test(test),
            };
            at = match answer {
                Some(true) => op.yes,
                Some(false) => op.no,
                None => return false,
            };
        }
        at == ACCEPT
    }

    fn relation(&self, relation: &Relation, subject: &mut impl Subject) -> Option<bool> {
        for &header in self.headers.get(range(&relation.headers))? {
            if !subject.has(header)? {
                return Some(false);
            }
        }
        let (left, right) = match *self.steps.get(range(&relation.steps))? {
            // The most frequent comparisons have a shorter path.
            [Step::Constant(offset), Step::Load { header, size }, Step::Constant(right)] => {
                (subject.load(header, offset, size)?, right)
            }
            [
                Step::Constant(offset),
                Step::Load { header, size },
                Step::Constant(operand),
                Step::Binary(binary),
                Step::Constant(right),
            ] => {
                let left = subject.load(header, offset, size)?;
                (binary.apply(left, operand)?, right)
            }
            ref steps => both_sides(steps, subject)?,
        };
        Some(relation.comparison.holds(left, right))
    }
}

/// Evaluates both sides of a comparison.
#[inline(never)]
fn both_sides(steps: &[Step], subject: &mut impl Subject) -> Option<(u32, u32)> {
    let mut stack = Stack::default();
    for step in steps {
        let value = match *step {
            Step::Constant(value) => value,
            Step::Length => subject.length()?,
            Step::Load { header, size } => subject.load(header, stack.pop()?, size)?,
            Step::Negate => stack.pop()?.wrapping_neg(),
            Step::Binary(binary) => {
                let (right, left) = (stack.pop()?, stack.pop()?);
                binary.apply(left, right)?
            }
        };
        stack.push(value)?;
    }
    let (right, left) = (stack.pop()?, stack.pop()?);
    Some((left, right))
}

fn range(range: &std::ops::Range<u32>) -> std::ops::Range<usize> {
    range.start as usize..range.end as usize
}

/// The stack of values. The parser guarantees that it never overflows.
#[derive(Default)]
struct Stack {
    values: [u32; STACK_MAX],
    length: usize,
}

impl Stack {
    #[inline]
    fn push(&mut self, value: u32) -> Option<()> {
        *self.values.get_mut(self.length)? = value;
        self.length += 1;
        Some(())
    }

    #[inline]
    fn pop(&mut self) -> Option<u32> {
        self.length = self.length.checked_sub(1)?;
        self.values.get(self.length).copied()
    }
}

/// Joins the answers for source and destination. The destination is tested only if the source does
/// not decide.
#[inline]
pub(super) fn ends(
    direction: Direction,
    source: impl FnOnce() -> Option<bool>,
    destination: impl FnOnce() -> Option<bool>,
) -> Option<bool> {
    match direction {
        Direction::Source => source(),
        Direction::Destination => destination(),
        Direction::Either => Some(source()? || destination()?),
        Direction::Both => Some(source()? && destination()?),
    }
}
