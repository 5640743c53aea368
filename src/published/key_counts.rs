//! An aggregate function: how often each value occurs in a group.
//!
//! Keys are numbered as they come, so that a row is remembered as one number, and rows of the same group and value are
//! put together whenever they have doubled: memory grows with what classes hold, not with their rows. DataFusion spills
//! the state as it does that of any aggregate.

use std::mem::size_of;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray, Decimal128Array, ListArray, StructArray, UInt64Array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Fields, UInt64Type};
use datafusion::common::{HashMap, not_impl_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, Expr, GroupsAccumulator, Signature, Volatility,
};

use super::exact::KEY;

/// How often each key of an expression occurs in a group.
pub(crate) fn count_keys(key: Expr) -> Expr {
    tally_function().call(vec![key])
}

/// The name of the aggregate function.
pub(crate) const COUNT_KEYS: &str = "tally";

/// The aggregate function itself.
pub(crate) fn tally_function() -> AggregateUDF {
    AggregateUDF::from(KeyCounts { signature: Signature::exact(vec![KEY], Volatility::Immutable) })
}

/// How often each value of a sensitive column occurs in a class, ascending by key.
pub(crate) type Histogram = Vec<(i128, u64)>;

/// Rows of a histogram.
pub(crate) fn rows_of(histogram: &[(i128, u64)]) -> u64 {
    histogram.iter().map(|(_, rows)| rows).sum()
}

/// The tally of a row of the aggregate's output, ascending by key.
pub(crate) fn read_key_counts(column: &ArrayRef, row: usize, into: &mut Histogram) {
    into.clear();
    let lists = column.as_list::<i32>();
    let (from, to) = (lists.value_offsets()[row] as usize, lists.value_offsets()[row + 1] as usize);
    let entries = lists.values().as_struct();
    let keys = entries.column(0).as_primitive::<Decimal128Type>();
    let rows = entries.column(1).as_primitive::<UInt64Type>();
    into.extend((from..to).map(|entry| (keys.value(entry), rows.value(entry))));
    into.sort_unstable_by_key(|(key, _)| *key);
}

fn entry_fields() -> Fields {
    Fields::from(vec![Field::new("key", KEY, false), Field::new("rows", DataType::UInt64, false)])
}

fn item_field() -> FieldRef {
    Arc::new(Field::new("item", DataType::Struct(entry_fields()), false))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct KeyCounts {
    signature: Signature,
}

impl AggregateUDFImpl for KeyCounts {
    fn name(&self) -> &str {
        COUNT_KEYS
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::List(item_field()))
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        not_impl_err!("a tally of a table without groups")
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format!("{}[tally]", args.name), DataType::List(item_field()), true))])
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::<Counted>::default())
    }
}

/// Rows that wait before they are put together for the first time.
const FRESH: usize = 1 << 16;

/// A group and the number of a key as one number.
fn pack_place(group: usize, key: u32) -> u64 {
    (group as u64) << 32 | u64::from(key)
}

/// The tallies of all groups.
#[derive(Debug, Default)]
struct Counted {
    groups: usize,
    /// Every key that was seen, by number.
    keys: Vec<i128>,
    numbers: HashMap<i128, u32>,
    /// Group and key, ascending and each once, and how many rows hold them.
    settled: Vec<(u64, u64)>,
    /// The same in no order, any number of times.
    fresh: Vec<(u64, u64)>,
}

impl Counted {
    fn number_key(&mut self, key: i128) -> Result<u32> {
        if let Some(number) = self.numbers.get(&key) {
            return Ok(*number);
        }
        let number = u32::try_from(self.keys.len())
            .map_err(|_| DataFusionError::ResourcesExhausted("more than 2^32 values in one partition".into()))?;
        self.keys.push(key);
        self.numbers.insert(key, number);
        Ok(number)
    }

    fn add_key(&mut self, group: usize, key: i128, rows: u64) -> Result<()> {
        let place = pack_place(group, self.number_key(key)?);
        match self.fresh.last_mut() {
            Some((last, count)) if *last == place => *count += rows,
            _ => self.fresh.push((place, rows)),
        }
        Ok(())
    }

    fn grow_groups(&mut self, groups: usize) {
        self.groups = self.groups.max(groups);
        if self.fresh.len() >= FRESH.max(self.settled.len()) {
            self.flush_counts();
        }
    }

    /// Puts rows of the same group and key together.
    fn flush_counts(&mut self) {
        self.settled.append(&mut self.fresh);
        // Most of it is in order, which the sort sees.
        self.settled.sort_by_key(|(place, _)| *place);
        self.settled.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            earlier.1 += if same { later.1 } else { 0 };
            same
        });
    }

    /// The tallies of the first groups as lists; the others move up.
    fn emit_groups(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.flush_counts();
        let groups = match emit_to {
            EmitTo::All => self.groups,
            EmitTo::First(groups) => groups,
        };
        let end = self.settled.partition_point(|(place, _)| ((place >> 32) as usize) < groups);
        let left = self.settled.split_off(end);
        let emitted = std::mem::replace(&mut self.settled, left);
        self.settled.iter_mut().for_each(|(place, _)| *place -= (groups as u64) << 32);
        self.groups -= groups.min(self.groups);
        let mut lengths = vec![0; groups];
        emitted.iter().for_each(|(place, _)| lengths[(place >> 32) as usize] += 1);
        let keys = emitted.iter().map(|(place, _)| self.keys[(*place & u64::from(u32::MAX)) as usize]).collect();
        let lists = list_array(lengths, keys, emitted.iter().map(|(_, rows)| *rows).collect());
        if self.groups == 0 && self.settled.is_empty() {
            *self = Self::default();
        }
        lists
    }
}

fn list_array(lengths: Vec<usize>, keys: Vec<i128>, rows: Vec<u64>) -> Result<ArrayRef> {
    let keys: ArrayRef = Arc::new(Decimal128Array::from(keys).with_data_type(KEY));
    let rows: ArrayRef = Arc::new(UInt64Array::from(rows));
    let entries = StructArray::try_new(entry_fields(), vec![keys, rows], None)?;
    Ok(Arc::new(ListArray::try_new(item_field(), OffsetBuffer::from_lengths(lengths), Arc::new(entries), None)?))
}

impl GroupsAccumulator for Counted {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        if opt_filter.is_some() {
            return not_impl_err!("a tally of some rows of a group");
        }
        let keys = values[0].as_primitive::<Decimal128Type>();
        for (&group, &key) in group_indices.iter().zip(keys.values()) {
            self.add_key(group, key, 1)?;
        }
        self.grow_groups(total_num_groups);
        Ok(())
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        let lists = values[0].as_list::<i32>();
        let entries = lists.values().as_struct();
        let keys = entries.column(0).as_primitive::<Decimal128Type>();
        let rows = entries.column(1).as_primitive::<UInt64Type>();
        for (&group, ends) in group_indices.iter().zip(lists.value_offsets().windows(2)) {
            for entry in ends[0] as usize..ends[1] as usize {
                self.add_key(group, keys.value(entry), rows.value(entry))?;
            }
        }
        self.grow_groups(total_num_groups);
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.emit_groups(emit_to)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.emit_groups(emit_to)?])
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        if opt_filter.is_some() {
            return not_impl_err!("a tally of some rows of a group");
        }
        let keys = values[0].as_primitive::<Decimal128Type>().values().to_vec();
        Ok(vec![list_array(vec![1; keys.len()], keys.clone(), vec![1; keys.len()])?])
    }

    fn size(&self) -> usize {
        let places = (self.settled.capacity() + self.fresh.capacity()) * size_of::<(u64, u64)>();
        places + self.keys.capacity() * size_of::<i128>() + self.numbers.capacity() * size_of::<(i128, u32)>()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Array;

    use super::*;

    fn keys(keys: &[i128]) -> Vec<ArrayRef> {
        vec![Arc::new(Decimal128Array::from(keys.to_vec()).with_data_type(KEY))]
    }

    fn read(lists: &ArrayRef) -> Vec<Vec<(i128, u64)>> {
        let mut entries = Vec::new();
        let mut one = |row| {
            read_key_counts(lists, row, &mut entries);
            entries.clone()
        };
        (0..lists.len()).map(&mut one).collect()
    }

    #[test]
    fn groups_are_counted_emitted_and_merged() {
        let mut first = Counted::default();
        first.update_batch(&keys(&[7, 9, 7, 7]), &[0, 1, 1, 0], None, 2).unwrap();
        first.update_batch(&keys(&[9, -1]), &[1, 2], None, 3).unwrap();
        let one = first.state(EmitTo::First(1)).unwrap();
        assert_eq!(read(&one[0]), [[(7, 2)]]);
        // The second group is now the first.
        first.update_batch(&keys(&[8]), &[0], None, 2).unwrap();
        let rest = first.state(EmitTo::All).unwrap();
        assert_eq!(read(&rest[0]), [vec![(7, 1), (8, 1), (9, 2)], vec![(-1, 1)]]);
        let mut merged = Counted::default();
        merged.merge_batch(&rest, &[1, 0], 2).unwrap();
        merged.merge_batch(&one, &[1], 2).unwrap();
        assert_eq!(read(&merged.evaluate(EmitTo::All).unwrap()), [vec![(-1, 1)], vec![(7, 3), (8, 1), (9, 2)]]);
        assert!(merged.keys.is_empty() && merged.groups == 0);
    }

    #[test]
    fn memory_grows_with_what_classes_hold() {
        let mut counted = Counted::default();
        for _ in 0..200 {
            counted.update_batch(&keys(&[1, 2, 3, 4].repeat(1024)), &[0, 1, 0, 1].repeat(1024), None, 2).unwrap();
        }
        assert!(counted.size() < 8 << 20, "{}", counted.size());
        assert_eq!(
            read(&counted.evaluate(EmitTo::All).unwrap()),
            [vec![(1, 204_800), (3, 204_800)], vec![(2, 204_800), (4, 204_800)]]
        );
    }
}
