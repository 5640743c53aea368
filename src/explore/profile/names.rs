//! Guesses from the name of a column: usual words, and the role that each of them suggests.

use crate::policy::Role;

/// A word of a name and what it points at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hint {
    /// The role that the word points at.
    pub role: Role,
    /// The word.
    pub word: &'static str,
    /// What such columns hold.
    pub what: &'static str,
    /// Whether values are codes whose first characters mean most.
    pub code: bool,
}

type Family = (Role, &'static str, &'static str);

/// Families of words, the strongest first: what identifies on its own, then what is sensitive, then what could be
/// known from elsewhere.
const FAMILIES: &[Family] = &[
    (Role::Identifier, "names", "name surname forename firstname lastname fullname nickname maiden initials signature"),
    (Role::Identifier, "e-mail addresses", "email mail mailbox"),
    (Role::Identifier, "telephone numbers", "phone telephone tel mobile msisdn fax cellphone"),
    (Role::Identifier, "addresses", "address addr street house flat"),
    (
        Role::Identifier,
        "numbers of documents or accounts",
        "ssn nino passport iban bic account card licence license plate vin nhs mrn insurance taxpayer pesel cpf dni",
    ),
    (
        Role::Identifier,
        "accounts or devices",
        "username login user password ip imei imsi device cookie url website uuid guid",
    ),
    (
        Role::Identifier,
        "free text, which may name people",
        "note notes comment comments remark remarks description narrative photo image",
    ),
    (
        Role::Sensitive,
        "health",
        "diagnosis diagnoses disease illness disorder icd symptom symptoms treatment medication drug prescription \
         procedure surgery hiv blood lab outcome disability genetic genotype smoker smoking alcohol pregnant therapy \
         cancer vaccine",
    ),
    (
        Role::Sensitive,
        "money",
        "income salary wage wages earnings pay payment debt credit balance loan wealth asset assets amount spend \
         spending cost charge charges benefit benefits capital revenue price tax",
    ),
    (Role::Sensitive, "marks and scores", "grade grades mark marks gpa score rating result"),
    (
        Role::Sensitive,
        "belief, conviction or law",
        "religion faith political party vote union orientation offence offense crime conviction arrest sentence \
         verdict charged",
    ),
    (
        Role::Quasi,
        "dates of a life",
        "birth dob born birthday birthdate birthyear death date day month year arrival admission discharge visit \
         graduation enrolment enrollment hired joined",
    ),
    (Role::Quasi, "age", "age aged"),
    (Role::Quasi, "sex", "sex gender"),
    (Role::Quasi, "origin", "race ethnicity ethnic nationality citizenship citizen native language tribe"),
    (Role::Quasi, POST_CODES, "zip zipcode postcode postal plz"),
    (
        Role::Quasi,
        "places",
        "country region state county province city town district ward municipality area place location latitude \
         longitude lat lon lng neighbourhood neighborhood precinct",
    ),
    (
        Role::Quasi,
        "work",
        "occupation job profession employer employment workclass work industry position title department rank career",
    ),
    (Role::Quasi, "education", "education degree school college university qualification schooling"),
    (
        Role::Quasi,
        "family",
        "marital married civil spouse household family children dependents dependants relationship",
    ),
    (Role::Quasi, "looks", "height weight eye eyes hair bmi"),
];

/// What codes of places are called.
const POST_CODES: &str = "post codes";

/// Words after which a name is that of a thing, not of a person: `product_name`, `country_name`.
const THINGS: &str = "product item file table event category brand drug company class group type level status country \
                      region state county city town district department school job title industry disease diagnosis";

/// Words that make a number of a name's other words: `person_id`.
const NUMBERS: &str = "id ids identifier key code number no nr num ref uid pid";

/// Those who are numbered in one word: `patientid`.
const NUMBERED: &str = "person patient user member customer client employee student subject citizen case record row";

fn is_in(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}

/// The words of a name in lower case: split at all but letters and digits, and where lower case turns to upper.
pub(super) fn split_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut low = false;
    for c in name.chars() {
        let starts = !c.is_alphanumeric() || (c.is_uppercase() && low);
        if starts && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        low = c.is_lowercase() || c.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// What a name points at, if anything: whole words first, then words that stand inside of longer ones.
pub(super) fn find_hint(name: &str) -> Option<Hint> {
    let words = split_words(name);
    let of_a_thing = words.len() > 1 && words.iter().any(|word| is_in(THINGS, word));
    let joined = words.concat();
    let whole = |candidate: &str| words.iter().any(|word| word == candidate);
    let inside = |word: &str| word.len() >= 4 && (joined.starts_with(word) || joined.ends_with(word));
    let find = |fits: &dyn Fn(&str) -> bool| {
        FAMILIES.iter().find_map(|&(role, what, list)| {
            let word = list.split_whitespace().find(|word| fits(word) && !(of_a_thing && *word == "name"))?;
            Some(Hint { role, word, what, code: what == POST_CODES })
        })
    };
    find(&whole).or_else(|| find(&inside))
}

/// Whether the name is that of a number which stands for something: `id`, `patient_no`.
pub(super) fn is_number_of(name: &str) -> bool {
    let of_somebody = |word: &str, number: &str| word.strip_suffix(number).is_some_and(|rest| is_in(NUMBERED, rest));
    let one_word = |word: &str| NUMBERS.split_whitespace().any(|number| of_somebody(word, number));
    split_words(name).last().is_some_and(|last| is_in(NUMBERS, last) || one_word(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str) -> Option<Role> {
        find_hint(name).map(|hint| hint.role)
    }

    #[test]
    fn names_are_parted_into_words() {
        assert_eq!(split_words("native-country"), ["native", "country"]);
        assert_eq!(split_words("dateOfBirth"), ["date", "of", "birth"]);
        assert_eq!(split_words("ICD10_code"), ["icd10", "code"]);
        assert_eq!(split_words("__x"), ["x"]);
    }

    #[test]
    fn words_point_at_roles() {
        for name in ["name", "first_name", "eMail", "Phone number", "home_address", "passport_no", "lastname"] {
            assert_eq!(role(name), Some(Role::Identifier), "{name}");
        }
        for name in ["age", "zip", "zipcode", "BirthDate", "native-country", "job_title", "maritalstatus", "workclass"]
        {
            assert_eq!(role(name), Some(Role::Quasi), "{name}");
        }
        for name in ["diagnosis", "salary-class", "income", "test_score", "main_disease"] {
            assert_eq!(role(name), Some(Role::Sensitive), "{name}");
        }
        for name in ["x1", "flag", "value"] {
            assert_eq!(role(name), None, "{name}");
        }
    }

    #[test]
    fn names_of_things_are_no_names() {
        assert_eq!(role("country_name"), Some(Role::Quasi));
        assert_eq!(role("product_name"), None);
        assert!(
            is_number_of("person_id") && is_number_of("patientid") && !is_number_of("paid") && !is_number_of("age")
        );
    }
}
