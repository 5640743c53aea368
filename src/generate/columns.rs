//! People as Arrow columns. Every text comes from a static table or is written straight into the builder, so that no
//! row allocates.

use std::fmt::Write;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Int16Array, Int32Array, Int64Array, ListBuilder, StringArray,
    StringBuilder, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::RecordBatch;

use super::draw::{Choice, Draws, Topic};
use super::people::Person;
use super::vocabulary::{
    DIAGNOSES, EDUCATION, FAMILY_ENDS, FAMILY_STARTS, FIRST_NAMES, MARITAL, OCCUPATIONS, REGIONS, REGIONS_PER_COUNTRY,
    SEXES, TAGS,
};

/// Digits of an income, and how many of them stand behind the point.
const INCOME: (u8, i8) = (10, 2);

/// The fifteen columns: two identifiers, eight quasi-identifiers, two sensitive columns and three that are just kept.
pub(super) fn census_schema() -> SchemaRef {
    let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
    Arc::new(Schema::new(vec![
        Field::new("person_id", DataType::Int64, false),
        text("name", false),
        Field::new("age", DataType::Int32, false),
        text("sex", true),
        text("region", false),
        text("postcode", false),
        text("education", false),
        text("occupation", false),
        text("marital_status", false),
        Field::new("arrival", DataType::Date32, true),
        text("diagnosis", false),
        Field::new("income", DataType::Decimal128(INCOME.0, INCOME.1), false),
        Field::new("household_size", DataType::Int16, false),
        Field::new("updated_at", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
        Field::new("tags", DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))), true),
    ]))
}

/// The rows `first..first + rows` of the census of that seed.
pub(super) fn census_batch(schema: SchemaRef, seed: u64, first: u64, rows: usize) -> Result<RecordBatch, ArrowError> {
    let numbers = first..first + rows as u64;
    let people: Vec<Person> = numbers.clone().map(|row| Person::of_row(seed, row)).collect();
    let words = |width: usize, word: &dyn Fn(&Person) -> &'static str| text_column(&people, width, word);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(numbers.clone().map(|row| row as i64 + 1))),
        name_column(&people, seed, first)?,
        Arc::new(Int32Array::from_iter_values(people.iter().map(|person| i32::from(person.age)))),
        Arc::new(StringArray::from_iter(people.iter().map(|person| person.sex.map(|sex| SEXES[usize::from(sex)])))),
        words(10, &|person| REGIONS[usize::from(person.region)].name),
        postcode_column(&people),
        words(14, &|person| EDUCATION[usize::from(person.education)]),
        words(10, &|person| OCCUPATIONS[usize::from(person.occupation)].name),
        words(12, &|person| MARITAL[usize::from(person.marital)]),
        Arc::new(Date32Array::from_iter(people.iter().map(|person| person.arrival))),
        words(13, &|person| DIAGNOSES[usize::from(person.diagnosis)].0),
        Arc::new(
            Decimal128Array::from_iter_values(people.iter().map(|person| i128::from(person.income)))
                .with_precision_and_scale(INCOME.0, INCOME.1)?,
        ),
        Arc::new(Int16Array::from_iter_values(people.iter().map(|person| i16::from(person.household)))),
        Arc::new(TimestampMicrosecondArray::from_iter(people.iter().map(|person| person.updated)).with_timezone("UTC")),
        tag_column(numbers, seed, rows),
    ];
    RecordBatch::try_new(schema, columns)
}

/// A column of words from a table, each of about `width` bytes.
fn text_column(people: &[Person], width: usize, word: &dyn Fn(&Person) -> &'static str) -> ArrayRef {
    let mut builder = StringBuilder::with_capacity(people.len(), people.len() * width);
    for person in people {
        builder.append_value(word(person));
    }
    Arc::new(builder.finish())
}

/// First and family name.
fn name_column(people: &[Person], seed: u64, first: u64) -> Result<ArrayRef, ArrowError> {
    let mut builder = StringBuilder::with_capacity(people.len(), people.len() * 16);
    for (row, person) in (first..).zip(people) {
        let draws = Draws::new(seed, row);
        let sex = person.sex.map_or_else(|| draws.draw_below(Topic::FirstName, 2) as usize, usize::from);
        let family = draws.draw_below(Topic::LastName, (FAMILY_STARTS.len() * FAMILY_ENDS.len()) as u64) as usize;
        let parts = [
            FIRST_NAMES[sex][draws.draw_below(Topic::FirstName, 32) as usize],
            " ",
            FAMILY_STARTS[family % FAMILY_STARTS.len()],
            FAMILY_ENDS[family / FAMILY_STARTS.len()],
        ];
        for part in parts {
            builder.write_str(part).map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
        }
        builder.append_value("");
    }
    Ok(Arc::new(builder.finish()))
}

/// Five digits: country, region in the country, district, and two for the street.
fn postcode_column(people: &[Person]) -> ArrayRef {
    let mut builder = StringBuilder::with_capacity(people.len(), people.len() * 5);
    for person in people {
        let region = usize::from(person.region);
        let digits = [
            b'1' + (region / REGIONS_PER_COUNTRY) as u8,
            b'0' + (region % REGIONS_PER_COUNTRY) as u8,
            b'0' + person.district,
            b'0' + person.street / 10,
            b'0' + person.street % 10,
        ];
        builder.append_value(str::from_utf8(&digits).unwrap_or_default());
    }
    Arc::new(builder.finish())
}

/// Which tag a row's list begins with.
static COMMON_TAGS: LazyLock<Choice> = LazyLock::new(|| Choice::zipf(TAGS.len(), 1.0));

/// None to three different tags, the first ones of the vocabulary most often; null for one row in twenty.
fn tag_column(rows: Range<u64>, seed: u64, count: usize) -> ArrayRef {
    let mut builder = ListBuilder::with_capacity(StringBuilder::with_capacity(count * 2, count * 16), count);
    for row in rows {
        let draws = Draws::new(seed, row);
        if draws.draw_chance(Topic::Tags, 50) {
            builder.append_null();
            continue;
        }
        let length = [0, 0, 1, 1, 1, 2, 2, 3][(draws.bits(Topic::Tags) & 7) as usize];
        let start = COMMON_TAGS.pick(draws, Topic::Tags);
        for step in 0..length {
            builder.values().append_value(TAGS[(start + step * 5) % TAGS.len()]);
        }
        builder.append(true);
    }
    Arc::new(builder.finish())
}
