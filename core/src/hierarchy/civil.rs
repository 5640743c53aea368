//! Days and dates of the proleptic Gregorian calendar, as whole-number arithmetic.
//!
//! Years are counted from March, so that the leap day is the last of a year, and in eras of 400 years, which all have
//! 146,097 days.

const ERA: i64 = 146_097;

/// Days since 1970-01-01 of a date.
pub fn day_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    year.div_euclid(400) * ERA + day_of_era - 719_468
}

/// The date (year, month, day) a number of days after 1970-01-01.
pub fn date_of(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let day_of_era = shifted.rem_euclid(ERA);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = shifted.div_euclid(ERA) * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day_of_year - (153 * from_march + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        for (day, date) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (19_782, (2024, 2, 29)),
            (-25_508, (1900, 3, 1)),
            (-25_509, (1900, 2, 28)),
            (-719_468, (0, 3, 1)),
            (-719_529, (-1, 12, 31)),
        ] {
            assert_eq!(date_of(day), date);
            assert_eq!(day_of(date.0, date.1, date.2), day);
        }
    }

    #[test]
    fn every_day_of_two_eras_follows_the_one_before() {
        let mut before = date_of(-200_001);
        for day in -200_000..100_000 {
            let date = date_of(day);
            assert_eq!(day_of(date.0, date.1, date.2), day);
            let next = date == (before.0, before.1, before.2 + 1)
                || date == (before.0, before.1 + 1, 1)
                || date == (before.0 + 1, 1, 1);
            assert!(next, "{before:?} then {date:?}");
            before = date;
        }
    }
}
