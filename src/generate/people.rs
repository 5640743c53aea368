//! One inhabitant of the realm, drawn so that the columns depend on each other as they do in a real census.
//!
//! 1. Where: region, then postal district and street by Zipf's law. District and region say whether it is city, town
//!    or countryside.
//! 2. Age by setting: the young live in cities. Sex by age: women live longer.
//! 3. Education by age and setting; occupation by education, sex and age; marital status by age.
//! 4. Arrival (moving in) mostly in recent years, never before birth, often on the first of a month.
//! 5. Diagnosis by age; income log-normal around what education, occupation, age and setting earn.
//!
//! One row in a hundred is a twin: it takes all its quasi-identifiers from some earlier row.

use std::array;
use std::sync::LazyLock;

use super::draw::{Choice, Draws, Topic, exp_approx};
use super::vocabulary::{
    CHILD, DIAGNOSES, EDUCATION_OF_ADULTS, MARITAL_BY_AGE, OCCUPATIONS, REGIONS, RETIRED, STUDENT,
};

/// The day of the census, 1 January 2026, in days since 1970.
pub(super) const CENSUS_DAY: i32 = 20_454;

/// How many rows in a thousand repeat the quasi-identifiers of an earlier row.
const TWINS_PER_MILLE: u64 = 10;

/// A drawn person: codes into the vocabulary, and numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Person {
    pub(super) region: u8,
    pub(super) district: u8,
    pub(super) street: u8,
    pub(super) age: u8,
    /// Code of the sex, unless it is not known.
    pub(super) sex: Option<u8>,
    pub(super) education: u8,
    pub(super) occupation: u8,
    pub(super) marital: u8,
    /// Days since 1970.
    pub(super) arrival: Option<i32>,
    pub(super) diagnosis: u8,
    /// Hundredths.
    pub(super) income: i64,
    pub(super) household: u8,
    /// Microseconds since 1970.
    pub(super) updated: Option<i64>,
}

/// What shapes life: the kind of place that a person lives in.
#[derive(Debug, Clone, Copy)]
enum Setting {
    Country,
    Town,
    City,
}

impl Setting {
    const ALL: [Self; 3] = [Self::Country, Self::Town, Self::City];

    fn of_district(region: u8, district: u8) -> Self {
        let city = REGIONS[usize::from(region)].city_districts;
        match district {
            _ if district < city => Self::City,
            _ if district < city + 3 => Self::Town,
            _ => Self::Country,
        }
    }

    /// How many of a hundred people aged 0 live here for each one of another age.
    fn age_weight(self, age: usize) -> f64 {
        let age = age as f64;
        let bump = |centre: f64, width: f64| 1.0 / (1.0 + ((age - centre) / width) * ((age - centre) / width));
        let alive = if age < 55.0 { 1.0 } else { 1.0 - ((age - 55.0) / 46.0) * ((age - 55.0) / 46.0) };
        alive
            * match self {
                Self::Country => 0.7 + 1.2 * bump(63.0, 12.0) - 0.35 * bump(24.0, 6.0),
                Self::Town => 0.9 + 0.5 * bump(46.0, 12.0) + 0.2 * bump(8.0, 6.0),
                Self::City => 0.7 + 1.6 * bump(29.0, 8.0),
            }
    }
}

/// The tier of an education: basic, secondary, vocational, college, postgraduate.
pub(super) fn education_tier(education: u8) -> usize {
    match education {
        0..=5 => 0,
        6..=7 => 1,
        8..=9 => 2,
        10..=12 => 3,
        _ => 4,
    }
}

/// The distributions, made once.
struct Tables {
    region: Choice,
    district: Choice,
    street: Choice,
    age: [Choice; 3],
    education: [[Choice; 5]; 3],
    occupation: [[Choice; 5]; 2],
    marital: [Choice; 6],
    diagnosis: [Choice; 5],
    household: [Choice; 3],
}

static TABLES: LazyLock<Tables> = LazyLock::new(Tables::new);

impl Tables {
    fn new() -> Self {
        Self {
            region: Choice::new(REGIONS.iter().map(|region| region.weight)),
            district: Choice::zipf(10, 1.5),
            street: Choice::zipf(100, 2.0),
            age: Setting::ALL.map(|setting| Choice::new((0..100).map(|age| setting.age_weight(age)))),
            education: Setting::ALL.map(|setting| {
                let degrees = [0.5, 0.9, 1.7][setting as usize];
                array::from_fn(|band| {
                    Choice::new((0u8..).zip(&EDUCATION_OF_ADULTS).map(|(education, weights)| {
                        if education_tier(education) >= 3 { weights[band] * degrees } else { weights[band] }
                    }))
                })
            }),
            occupation: array::from_fn(|sex| {
                array::from_fn(|tier| {
                    Choice::new(OCCUPATIONS.iter().map(|job| {
                        let share = if sex == 0 { job.women } else { 1.0 - job.women };
                        job.tiers[tier] * share
                    }))
                })
            }),
            marital: array::from_fn(|band| Choice::new(MARITAL_BY_AGE[band])),
            diagnosis: array::from_fn(|band| Choice::new(DIAGNOSES.iter().map(|(_, weights)| weights[band]))),
            household: [
                // A child, an adult without and an adult with a partner: households of 1, 2, 3 and so on.
                Choice::new([0.0, 8.0, 30.0, 36.0, 16.0, 6.0, 2.0, 1.0, 1.0]),
                Choice::new([60.0, 22.0, 9.0, 5.0, 2.0, 1.0, 1.0]),
                Choice::new([0.0, 46.0, 20.0, 22.0, 8.0, 2.0, 1.0, 1.0]),
            ],
        }
    }
}

impl Person {
    /// The person of row `row` in the census of that seed.
    pub(super) fn of_row(seed: u64, row: u64) -> Self {
        let tables = &*TABLES;
        let own = Draws::new(seed, row);
        let draws = if row > 0 && own.draw_chance(Topic::Twin, TWINS_PER_MILLE) {
            Draws::new(seed, own.draw_below(Topic::TwinSource, row))
        } else {
            own
        };

        let region = tables.region.pick(draws, Topic::Region) as u8;
        let district = tables.district.pick(draws, Topic::District) as u8;
        let street = tables.street.pick(draws, Topic::Street) as u8;
        let setting = Setting::of_district(region, district);
        let age = tables.age[setting as usize].pick(draws, Topic::Age) as u8;
        let sex = draw_sex(draws, age);
        let education = draw_education(tables, draws, age, setting);
        let occupation = draw_occupation(tables, draws, age, sex, education);
        let marital = if age < 16 { 0 } else { tables.marital[marital_band(age)].pick(draws, Topic::Marital) as u8 };
        let arrival = draw_arrival(draws, age, setting);

        let diagnosis = tables.diagnosis[diagnosis_band(age)].pick(own, Topic::Diagnosis) as u8;
        let income = draw_income(own, age, education, occupation, setting);
        let kind = match marital {
            _ if age < 18 => 0,
            1 | 2 => 2,
            _ => 1,
        };
        let household = 1 + tables.household[kind].pick(own, Topic::Household) as u8;
        let updated = draw_updated(own);
        Self {
            region,
            district,
            street,
            age,
            sex,
            education,
            occupation,
            marital,
            arrival,
            diagnosis,
            income,
            household,
            updated,
        }
    }
}

/// Half of the young and two thirds of the oldest are women; about one in a hundred has no entry.
fn draw_sex(draws: Draws, age: u8) -> Option<u8> {
    let women = 490 + if age > 60 { u64::from(age - 60) * 5 } else { 0 };
    match draws.draw_below(Topic::Sex, 1000) {
        989.. => None,
        draw => Some(u8::from(draw >= women)),
    }
}

fn draw_education(tables: &Tables, draws: Draws, age: u8, setting: Setting) -> u8 {
    let band = match age {
        0..=2 => return 0,
        3..=5 => return u8::from(draws.draw_chance(Topic::Education, 850)),
        6..=8 => return 2,
        9..=11 => return 3,
        12..=15 => return 4,
        16..=18 => 0,
        19..=24 => 1,
        25..=44 => 2,
        45..=64 => 3,
        _ => 4,
    };
    tables.education[setting as usize][band].pick(draws, Topic::Education) as u8
}

fn draw_occupation(tables: &Tables, draws: Draws, age: u8, sex: Option<u8>, education: u8) -> u8 {
    let status = draws.draw_below(Topic::WorkStatus, 1000);
    let by_age = match age {
        0..=15 => Some(CHILD),
        16..=18 if status < 850 => Some(STUDENT),
        19..=25 if status < 420 => Some(STUDENT),
        60..=66 if status < 320 => Some(RETIRED),
        67..=74 if status < 900 => Some(RETIRED),
        75.. => Some(RETIRED),
        _ => None,
    };
    let sex = sex.unwrap_or((status % 2) as u8);
    let code = by_age.unwrap_or_else(|| {
        tables.occupation[usize::from(sex)][education_tier(education)].pick(draws, Topic::Occupation)
    });
    code as u8
}

fn marital_band(age: u8) -> usize {
    match age {
        0..=24 => 0,
        25..=34 => 1,
        35..=49 => 2,
        50..=64 => 3,
        65..=79 => 4,
        _ => 5,
    }
}

pub(super) fn diagnosis_band(age: u8) -> usize {
    match age {
        0..=14 => 0,
        15..=34 => 1,
        35..=59 => 2,
        60..=79 => 3,
        _ => 4,
    }
}

/// The day of moving in: half within about two years, with a long tail back to birth. Unknown for one in twelve,
/// more often in cities.
fn draw_arrival(draws: Draws, age: u8, setting: Setting) -> Option<i32> {
    if draws.draw_chance(Topic::ArrivalNull, [55, 75, 95][setting as usize]) {
        return None;
    }
    let unit = draws.draw_below(Topic::Arrival, 1 << 20) as f64 / f64::from(1 << 20);
    let days_ago = (unit * unit * unit / (1.05 - unit) * 3650.0) as i32;
    let lived = i32::from(age) * 365 + i32::from(age) / 4 + draws.draw_below(Topic::ArrivalDay, 365) as i32;
    let day = CENSUS_DAY - 1 - days_ago.min(lived);
    let on_the_first = days_ago + 31 < lived && draws.draw_below(Topic::ArrivalDay, 1000) < 350;
    Some(if on_the_first { first_of_month(day) } else { day })
}

/// The first day of the month of a day, both in days since 1970 (Hinnant's civil calendar).
fn first_of_month(day: i32) -> i32 {
    let day_of_era = (day + 719_468).rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5;
    day - day_of_month
}

/// Yearly income in hundredths; a child counts with what its parents earn. People name round numbers: most are multiples of 500, many of 50.
fn draw_income(own: Draws, age: u8, education: u8, occupation: u8, setting: Setting) -> i64 {
    let job = &OCCUPATIONS[usize::from(occupation)];
    let place = [0.85, 0.95, 1.2][setting as usize];
    let middle = if usize::from(occupation) == CHILD {
        28_000.0 * place
    } else {
        let base = [15_000.0, 21_000.0, 27_000.0, 36_000.0, 52_000.0][education_tier(education)];
        let seniority = 0.65 + 0.01 * f64::from(age.clamp(18, 58) - 18);
        base * job.pay * seniority * place
    };
    let amount = middle * exp_approx(0.42 * own.draw_normal(Topic::IncomeSpread));
    let heap = match own.draw_below(Topic::IncomeHeap, 100) {
        0..60 => 500.0,
        60..88 => 50.0,
        _ => 0.01,
    };
    (((amount / heap) as i64) as f64 * heap * 100.0 + 0.5) as i64
}

/// When the record was last touched: mostly in the last months before the census; never for a few.
fn draw_updated(own: Draws) -> Option<i64> {
    if own.draw_chance(Topic::UpdatedNull, 20) {
        return None;
    }
    let bits = own.bits(Topic::Updated);
    let (near, far) = ((bits & 0xFFFF_FFFF) as i64, (bits >> 32) as i64);
    // The product of two uniform numbers, up to six years, in microseconds.
    let ago = near * (far >> 12) / 24;
    Some(i64::from(CENSUS_DAY) * 86_400_000_000 - ago)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_begin_on_their_first_day() {
        assert_eq!(first_of_month(CENSUS_DAY), CENSUS_DAY);
        assert_eq!(first_of_month(CENSUS_DAY - 1), CENSUS_DAY - 31);
        assert_eq!(first_of_month(30), 0, "31 January 1970");
        assert_eq!(first_of_month(31 + 28), 31 + 28, "1 March 1970");
        assert_eq!(first_of_month(-1), -31, "31 December 1969");
        assert_eq!(first_of_month(11_016), 10_988, "29 February 2000");
    }

    #[test]
    fn nobody_moves_in_before_birth_or_after_the_census() {
        for row in 0..20_000 {
            let person = Person::of_row(1, row);
            let Some(arrival) = person.arrival else { continue };
            assert!(arrival < CENSUS_DAY);
            assert!(CENSUS_DAY - arrival <= (i32::from(person.age) + 1) * 366, "{person:?}");
        }
    }

    #[test]
    fn incomes_and_times_are_plausible() {
        let people: Vec<Person> = (0..50_000).map(|row| Person::of_row(1, row)).collect();
        assert!(people.iter().all(|person| (0..1_000_000_000).contains(&person.income)));
        let mut working: Vec<i64> = people.iter().filter(|person| person.occupation > 2).map(|p| p.income).collect();
        working.sort_unstable();
        let median = working[working.len() / 2];
        assert!((1_500_000..5_000_000).contains(&median), "median {median}");
        let oldest = people.iter().filter_map(|person| person.updated).min().unwrap();
        assert!((14 * 365..20_454).contains(&(oldest / 86_400_000_000)), "oldest update {oldest}");
    }
}
