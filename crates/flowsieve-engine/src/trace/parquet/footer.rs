//! The footer of a Parquet file: its columns, and where their parts stand.
//!
//! Parts are checked against the file before anything is read of them.

use super::thrift::Thrift;

/// What stands at the begin and at the end of a file.
pub(in super::super) const MAGIC: &[u8; 4] = b"PAR1";

/// Rows of a row group that are believed without bytes for them, and with each byte of its columns.
/// Rows that are all the same take next to no bytes, so that a short file could claim rows without
/// end.
const BELIEVED_ROWS: u64 = 1 << 16;
const BELIEVED_ROWS_A_BYTE: u64 = 256;

/// How values are stored.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Physical {
    Int32,
    Int64,
    Float,
    Double,
    Bytes,
    /// A kind that no column of ours has.
    Other,
}

/// A column that holds one value in each row, or none.
#[derive(Clone, Debug)]
pub(super) struct ColumnInfo {
    pub(super) name: String,
    /// Its number among all columns, those of structures included.
    leaf: usize,
    pub(super) physical: Physical,
    pub(super) is_optional: bool,
    /// Nanoseconds of its unit, if it is a time.
    pub(super) unit_ns: Option<i64>,
}

/// The values of a column in a row group, and where they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) codec: i64,
    /// All its pages are in encodings that are read.
    pub(super) has_known_encodings: bool,
}

/// Rows that are stored together.
#[derive(Clone, Debug)]
pub(super) struct RowGroup {
    pub(super) rows: u64,
    /// Of the columns that are read, in their order.
    pub(super) chunks: Vec<Chunk>,
}

#[derive(Debug, Default)]
struct Node {
    info: Option<ColumnInfo>,
    children: i64,
}

/// The columns of one value a row, and the number of all columns.
pub(super) fn columns(footer: &[u8]) -> Option<(Vec<ColumnInfo>, usize)> {
    let mut columns = Vec::new();
    let mut leaves = 0;
    // For each structure that is open, how many of its members follow.
    let mut open: Option<Vec<i64>> = None;
    Thrift::new(footer).structure(|thrift, field, _| {
        if field != 2 {
            return Some(false);
        }
        thrift.list(|thrift| {
            let node = node(thrift)?;
            let Some(open) = &mut open else {
                open = Some(vec![node.children]);
                return Some(());
            };
            while open.last() == Some(&0) {
                open.pop();
            }
            *open.last_mut()? -= 1;
            if node.children > 0 {
                open.push(node.children);
                return Some(());
            }
            if let Some(info) = node.info.filter(|_| open.len() == 1) {
                columns.push(ColumnInfo { leaf: leaves, ..info });
            }
            leaves += 1;
            Some(())
        })?;
        Some(true)
    })?;
    Some((columns, leaves))
}

/// An element of the schema; the root is one as well.
fn node(thrift: &mut Thrift<'_>) -> Option<Node> {
    const OPTIONAL: i64 = 1;
    let mut node = Node::default();
    let (mut physical, mut repetition, mut unit_ns) = (None, 0, None);
    let mut name = String::new();
    thrift.structure(|thrift, field, _| {
        match field {
            1 => physical = Some(thrift.number()?),
            3 => repetition = thrift.number()?,
            4 => name = String::from_utf8_lossy(thrift.bytes()?).into_owned(),
            5 => node.children = thrift.number()?.max(0),
            6 => match thrift.number()? {
                9 => unit_ns = Some(1_000_000),
                10 => unit_ns = Some(1_000),
                _ => {}
            },
            10 => thrift.structure(|thrift, field, _| {
                const TIMESTAMP: i64 = 8;
                if field != TIMESTAMP {
                    return Some(false);
                }
                unit_ns = Some(timestamp(thrift)?);
                Some(true)
            })?,
            _ => return Some(false),
        }
        Some(true)
    })?;
    if repetition <= OPTIONAL {
        node.info = Some(ColumnInfo {
            name,
            leaf: 0,
            physical: match physical {
                Some(1) => Physical::Int32,
                Some(2) => Physical::Int64,
                Some(4) => Physical::Float,
                Some(5) => Physical::Double,
                Some(6) => Physical::Bytes,
                _ => Physical::Other,
            },
            is_optional: repetition == OPTIONAL,
            unit_ns,
        });
    }
    Some(node)
}

/// The nanoseconds of the unit of a time.
fn timestamp(thrift: &mut Thrift<'_>) -> Option<i64> {
    let mut unit_ns = None;
    thrift.structure(|thrift, field, _| {
        if field != 2 {
            return Some(false);
        }
        thrift.structure(|_, unit, _| {
            unit_ns = match unit {
                1 => Some(1_000_000),
                2 => Some(1_000),
                3 => Some(1),
                _ => None,
            };
            Some(false)
        })?;
        Some(true)
    })?;
    unit_ns
}

/// The row groups of a file whose pages end at `end`, with what is read of them; or what is wrong
/// with them.
pub(super) fn row_groups(
    footer: &[u8],
    end: u64,
    leaves: usize,
    read: &[ColumnInfo],
) -> Result<Vec<RowGroup>, &'static str> {
    let mut groups = Vec::new();
    let mut wrong = "its footer cannot be read";
    let all = Thrift::new(footer).structure(|thrift, field, _| {
        if field != 4 {
            return Some(false);
        }
        thrift.list(|thrift| match row_group(thrift, end, leaves, read)? {
            Ok(group) => {
                groups.push(group);
                Some(())
            }
            Err(reason) => {
                wrong = reason;
                None
            }
        })?;
        Some(true)
    });
    all.map(|()| groups).ok_or(wrong)
}

fn row_group(
    thrift: &mut Thrift<'_>,
    end: u64,
    leaves: usize,
    read: &[ColumnInfo],
) -> Option<Result<RowGroup, &'static str>> {
    let mut rows = 0;
    let mut chunks = vec![None; read.len()];
    let mut number = 0;
    thrift.structure(|thrift, field, _| {
        match field {
            1 => thrift.list(|thrift| {
                let chunk = chunk(thrift)?;
                // A list of flows has few columns, and of all others nothing is looked at.
                for (place, _) in
                    chunks.iter_mut().zip(read).filter(|(_, column)| column.leaf == number)
                {
                    *place = Some(chunk);
                }
                number += 1;
                Some(())
            })?,
            3 => rows = thrift.number()?,
            _ => return Some(false),
        }
        Some(true)
    })?;
    Some(checked(rows, chunks, number == leaves, end))
}

fn checked(
    rows: i64,
    chunks: Vec<Option<Chunk>>,
    has_all: bool,
    end: u64,
) -> Result<RowGroup, &'static str> {
    let chunks: Option<Vec<Chunk>> = chunks.into_iter().collect();
    let chunks = chunks.filter(|_| has_all).ok_or("a row group has not the columns of the file")?;
    let is_inside = |chunk: &Chunk| {
        (MAGIC.len() as u64..=end).contains(&chunk.start)
            && (chunk.start..=end).contains(&chunk.end)
    };
    if !chunks.iter().all(is_inside) {
        return Err("a column stands outside the file");
    }
    let bytes: u64 = chunks.iter().map(|chunk| chunk.end - chunk.start).sum();
    let rows = u64::try_from(rows).map_err(|_| "a row group has fewer than no rows")?;
    if rows > bytes.saturating_mul(BELIEVED_ROWS_A_BYTE).saturating_add(BELIEVED_ROWS) {
        return Err("a row group claims more rows than its bytes can hold");
    }
    Ok(RowGroup { rows, chunks })
}

fn chunk(thrift: &mut Thrift<'_>) -> Option<Chunk> {
    /// Plain values, runs and bits of levels, indexes into a dictionary, differences, and texts
    /// behind their lengths.
    const KNOWN: [i64; 7] = [0, 2, 3, 4, 5, 6, 8];
    let (mut codec, mut length, mut data, mut dictionary) = (0, 0, 0, None);
    let mut has_known_encodings = true;
    thrift.structure(|thrift, field, _| {
        if field != 3 {
            return Some(false);
        }
        thrift.structure(|thrift, field, _| {
            match field {
                2 => thrift.list(|thrift| {
                    has_known_encodings &= KNOWN.contains(&thrift.number()?);
                    Some(())
                })?,
                4 => codec = thrift.number()?,
                7 => length = thrift.number()?,
                9 => data = thrift.number()?,
                11 => dictionary = Some(thrift.number()?),
                _ => return Some(false),
            }
            Some(true)
        })?;
        Some(true)
    })?;
    // Some writers write 0 where there is no dictionary.
    let start = dictionary.filter(|&start| start > 0).map_or(data, |start: i64| start.min(data));
    // What is negative lies outside every file.
    let start = start.cast_unsigned();
    Some(Chunk {
        start,
        end: start.saturating_add(length.cast_unsigned()),
        codec,
        has_known_encodings,
    })
}
