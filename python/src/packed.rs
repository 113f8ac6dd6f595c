//! Rows in as little memory as they take. Other libraries and Python get them unpacked.

use arrow_array::builder::{StringBuilder, StringDictionaryBuilder};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, Int16Type, Int32Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array as _, ArrayRef, DictionaryArray, FixedSizeBinaryArray, NullArray, PrimitiveArray,
    RecordBatch, RecordBatchOptions, StringArray, new_null_array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;

/// Batches that share dictionaries. With more, libraries would be slower that read a dictionary
/// anew for each batch.
const SHARING: usize = 16;

/// Prefix of every Community ID, and bytes of the hash that follows as Base64.
const COMMUNITY_ID: (&str, usize) = ("1:", 20);

/// Returns these batches packed.
pub(crate) fn packed_batches<E: From<ArrowError>>(
    batches: impl Iterator<Item = Result<RecordBatch, E>>,
) -> Result<Vec<RecordBatch>, E> {
    let mut made = Vec::new();
    for batch in batches {
        let (schema, columns, rows) = batch?.into_parts();
        let columns: Vec<_> = columns.into_iter().map(packed).collect();
        let fields = schema.fields().iter().zip(&columns).map(|(field, column)| {
            Field::new(field.name(), column.data_type().clone(), field.is_nullable())
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        made.push(batch_of(schema, columns, rows)?);
    }
    for sharing in made.chunks_mut(SHARING) {
        share_dictionaries::<Int16Type>(sharing)?;
        share_dictionaries::<Int32Type>(sharing)?;
    }
    Ok(made)
}

/// Returns these rows in the types of the schema.
pub(crate) fn unpacked_batch(batch: &RecordBatch, schema: &SchemaRef) -> RecordBatch {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| unpacked(column, field.data_type()));
    batch_of(Arc::clone(schema), columns.collect(), batch.num_rows())
        .expect("columns get the types that they had")
}

/// Returns a batch, which may have no columns.
pub(crate) fn batch_of(
    schema: SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns, &options)
}

/// Gives all columns that are dictionaries with these keys the same one.
fn share_dictionaries<K: ArrowDictionaryKeyType>(
    batches: &mut [RecordBatch],
) -> Result<(), ArrowError> {
    let mut words = StringDictionaryBuilder::<K>::new();
    let columns = batches.iter().flat_map(RecordBatch::columns);
    for part in columns.filter_map(|column| column.as_dictionary_opt::<K>()) {
        for word in part.values().as_string::<i32>() {
            words.append(word.unwrap_or_default())?;
        }
    }
    let words = words.finish();
    let mut first = 0;
    for batch in batches {
        let (schema, mut columns, rows) = batch.clone().into_parts();
        for column in &mut columns {
            let Some(part) = column.as_dictionary_opt::<K>() else { continue };
            let new = words.keys().slice(first, part.values().len());
            first += new.len();
            let keys = (0..part.len()).map(|row| part.key(row).map(|key| new.value(key)));
            let keys = keys.collect::<PrimitiveArray<K>>();
            *column = Arc::new(DictionaryArray::new(keys, Arc::clone(words.values())));
        }
        *batch = batch_of(schema, columns, rows)?;
    }
    Ok(())
}

/// Returns a column in as little memory as it takes, from which `unpacked` makes it again.
fn packed(column: ArrayRef) -> ArrayRef {
    if column.null_count() == column.len() {
        return Arc::new(NullArray::new(column.len()));
    }
    if let Some(numbers) = column.as_primitive_opt::<UInt64Type>() {
        let most = numbers.values().iter().copied().max().unwrap_or_default();
        return match most {
            0..=0xff => Arc::new(numbers.unary::<_, UInt8Type>(|number| number as u8)),
            0x100..=0xffff => Arc::new(numbers.unary::<_, UInt16Type>(|number| number as u16)),
            0x1_0000..=0xffff_ffff => {
                Arc::new(numbers.unary::<_, UInt32Type>(|number| number as u32))
            }
            _ => column,
        };
    }
    let texts = column.as_string_opt::<i32>();
    texts.and_then(hashes_of).map_or(column, |hashes| Arc::new(hashes))
}

/// Returns a column that `packed` returned in the type that it had.
pub(crate) fn unpacked(column: &ArrayRef, kind: &DataType) -> ArrayRef {
    fn widened<T: ArrowPrimitiveType<Native: Into<u64>>>(column: &ArrayRef) -> ArrayRef {
        Arc::new(column.as_primitive::<T>().unary::<_, UInt64Type>(Into::into))
    }
    match (column.data_type(), kind) {
        (DataType::Null, _) => new_null_array(kind, column.len()),
        (DataType::UInt8, DataType::UInt64) => widened::<UInt8Type>(column),
        (DataType::UInt16, DataType::UInt64) => widened::<UInt16Type>(column),
        (DataType::UInt32, DataType::UInt64) => widened::<UInt32Type>(column),
        (DataType::FixedSizeBinary(_), DataType::Utf8) => {
            let mut texts = StringBuilder::new();
            for_each_community_id(column, |text| texts.append_option(text));
            Arc::new(texts.finish())
        }
        _ => Arc::clone(column),
    }
}

/// Calls `take` with the Community ID of each row of a packed column.
pub(crate) fn for_each_community_id(column: &ArrayRef, mut take: impl FnMut(Option<&str>)) {
    let mut text = String::new();
    for hash in column.as_fixed_size_binary() {
        text.replace_range(.., COMMUNITY_ID.0);
        take(hash.map(|hash| {
            STANDARD.encode_string(hash, &mut text);
            text.as_str()
        }));
    }
}

/// Returns the hashes of Community IDs; `None` unless all texts are some.
fn hashes_of(texts: &StringArray) -> Option<FixedSizeBinaryArray> {
    let (version, length) = COMMUNITY_ID;
    let mut hashes = Vec::with_capacity(texts.len() * length);
    for text in texts {
        let end = hashes.len() + length;
        if let Some(text) = text {
            // Decoding takes no text that encoding does not make.
            STANDARD.decode_vec(text.strip_prefix(version)?, &mut hashes).ok()?;
        } else {
            hashes.resize(end, 0);
        }
        (hashes.len() == end).then_some(())?;
    }
    Some(FixedSizeBinaryArray::new(length as i32, hashes.into(), texts.nulls().cloned()))
}
