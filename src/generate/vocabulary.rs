//! The words of the census: every text that a column can hold, in the order of its codes.
//!
//! The people and the realm are made up. The level files in `pipelines/hierarchies` know exactly these words.

/// A region of the realm.
#[derive(Debug)]
pub(super) struct Region {
    /// Its name.
    pub(super) name: &'static str,
    /// Share of the population, relative to the others.
    pub(super) weight: f64,
    /// How many of its ten postal districts are city; the next three are towns and the rest is countryside.
    pub(super) city_districts: u8,
}

const fn region(name: &'static str, weight: f64, city_districts: u8) -> Region {
    Region { name, weight, city_districts }
}

/// Regions per country: the first digit of a postcode is the country, the second the region within it.
pub(super) const REGIONS_PER_COUNTRY: usize = 4;

/// Twenty regions, four to each of the five countries of the realm.
pub(super) const REGIONS: [Region; 20] = [
    // Northmarch
    region("Harrowdale", 62.0, 3),
    region("Skerries", 6.0, 0),
    region("Coldmoor", 21.0, 1),
    region("Whinfell", 33.0, 1),
    // Westreach
    region("Lorn Coast", 18.0, 1),
    region("Peverel", 75.0, 4),
    region("Saltings", 12.0, 0),
    region("Marram", 29.0, 2),
    // Middle Shires
    region("Crown City", 240.0, 9),
    region("Broadwater", 110.0, 5),
    region("Kingsfield", 84.0, 3),
    region("Anvil Vale", 130.0, 6),
    // Eastmere
    region("Fenmark", 16.0, 0),
    region("Amberley", 47.0, 2),
    region("Quay Towns", 96.0, 5),
    region("Larkspur", 24.0, 1),
    // Southdown
    region("Chalk Hills", 37.0, 1),
    region("Vinelands", 42.0, 2),
    region("Port Alder", 150.0, 7),
    region("Sandhaven", 54.0, 2),
];

/// Values of `sex`; a few rows have none.
pub(super) const SEXES: [&str; 2] = ["female", "male"];

/// Sixteen levels of education, rising.
pub(super) const EDUCATION: [&str; 16] = [
    "none",
    "nursery",
    "primary 1-3",
    "primary 4-6",
    "lower secondary",
    "secondary unfinished",
    "school certificate",
    "upper secondary",
    "apprenticeship",
    "technical diploma",
    "some college",
    "associate degree",
    "bachelor",
    "master",
    "professional degree",
    "doctorate",
];

/// How many adults hold each level of education: columns are the ages 16-18, 19-24, 25-44, 45-64 and 65 or more.
pub(super) const EDUCATION_OF_ADULTS: [[f64; 5]; 16] = [
    [1.0, 1.0, 1.0, 2.0, 5.0],
    [0.0, 0.0, 0.0, 0.0, 0.0],
    [0.0, 0.5, 1.0, 2.0, 6.0],
    [1.0, 1.0, 2.0, 4.0, 11.0],
    [22.0, 5.0, 5.0, 9.0, 16.0],
    [34.0, 9.0, 6.0, 8.0, 7.0],
    [36.0, 22.0, 14.0, 19.0, 18.0],
    [12.0, 24.0, 12.0, 11.0, 8.0],
    [3.0, 11.0, 12.0, 14.0, 12.0],
    [0.0, 5.0, 8.0, 7.0, 4.0],
    [1.0, 16.0, 8.0, 6.0, 3.0],
    [0.0, 4.0, 6.0, 4.0, 2.0],
    [0.0, 9.0, 17.0, 10.0, 5.0],
    [0.0, 1.0, 9.0, 5.0, 2.0],
    [0.0, 0.0, 2.0, 2.0, 1.0],
    [0.0, 0.0, 1.5, 1.0, 0.5],
];

/// An occupation: its name, how its holders' education is spread over the five tiers (basic, secondary, vocational,
/// college, postgraduate), the share of women among its holders where all have the same education, and its pay
/// relative to what that education earns on the average.
#[derive(Debug)]
pub(super) struct Occupation {
    /// Its name.
    pub(super) name: &'static str,
    /// Weight for each tier of education.
    pub(super) tiers: [f64; 5],
    /// Share of women.
    pub(super) women: f64,
    /// Pay, relative.
    pub(super) pay: f64,
}

const fn job(name: &'static str, tiers: [f64; 5], women: f64, pay: f64) -> Occupation {
    Occupation { name, tiers, women, pay }
}

/// Code of the occupation of those under 16.
pub(super) const CHILD: usize = 0;
/// Code of the occupation of most people from 16 to 24.
pub(super) const STUDENT: usize = 1;
/// Code of the occupation of most people from 65.
pub(super) const RETIRED: usize = 2;

/// Forty occupations. The first three follow from age and have no weight of their own.
pub(super) const OCCUPATIONS: [Occupation; 40] = [
    // Outside the workforce
    job("child", [0.0; 5], 0.5, 1.0),
    job("student", [0.0; 5], 0.5, 0.25),
    job("retired", [0.0; 5], 0.5, 0.6),
    job("homemaker", [60.0, 40.0, 20.0, 12.0, 4.0], 0.85, 0.2),
    job("unemployed", [70.0, 40.0, 22.0, 12.0, 5.0], 0.45, 0.35),
    // Management
    job("executive", [0.0, 2.0, 2.0, 16.0, 40.0], 0.3, 2.2),
    job("finance manager", [0.0, 3.0, 2.0, 22.0, 30.0], 0.45, 1.6),
    job("shop manager", [6.0, 20.0, 14.0, 16.0, 2.0], 0.45, 1.2),
    job("farm manager", [6.0, 9.0, 14.0, 6.0, 1.0], 0.25, 1.1),
    // Professions
    job("physician", [0.0, 0.0, 0.0, 0.0, 46.0], 0.5, 1.9),
    job("lawyer", [0.0, 0.0, 0.0, 1.0, 36.0], 0.5, 1.6),
    job("scientist", [0.0, 0.0, 0.0, 6.0, 44.0], 0.45, 1.1),
    job("engineer", [0.0, 0.0, 6.0, 44.0, 38.0], 0.2, 1.25),
    job("teacher", [0.0, 1.0, 2.0, 62.0, 48.0], 0.75, 0.9),
    job("programmer", [0.0, 6.0, 6.0, 46.0, 24.0], 0.25, 1.4),
    job("accountant", [0.0, 6.0, 8.0, 36.0, 14.0], 0.55, 1.1),
    job("cleric", [0.0, 0.0, 0.0, 3.0, 6.0], 0.35, 0.7),
    // Technicians and care
    job("nurse", [0.0, 4.0, 34.0, 42.0, 5.0], 0.88, 0.95),
    job("laboratory technician", [0.0, 4.0, 18.0, 12.0, 2.0], 0.55, 1.0),
    job("draughtsman", [0.0, 3.0, 16.0, 6.0, 1.0], 0.3, 1.05),
    job("carer", [44.0, 36.0, 22.0, 5.0, 0.0], 0.85, 0.8),
    job("nursery nurse", [8.0, 20.0, 20.0, 9.0, 0.0], 0.95, 0.75),
    // Office
    job("clerk", [16.0, 60.0, 26.0, 30.0, 3.0], 0.7, 0.95),
    job("secretary", [5.0, 30.0, 14.0, 14.0, 1.0], 0.92, 0.9),
    job("bookkeeper", [2.0, 22.0, 12.0, 14.0, 0.0], 0.7, 1.0),
    job("call agent", [12.0, 26.0, 6.0, 8.0, 0.0], 0.6, 0.85),
    // Sales and service
    job("shop assistant", [66.0, 62.0, 18.0, 10.0, 0.0], 0.68, 0.8),
    job("cook", [34.0, 20.0, 16.0, 2.0, 0.0], 0.4, 0.85),
    job("waiter", [28.0, 24.0, 6.0, 4.0, 0.0], 0.6, 0.7),
    job("hairdresser", [9.0, 8.0, 20.0, 1.0, 0.0], 0.88, 0.75),
    job("cleaner", [80.0, 22.0, 6.0, 1.0, 0.0], 0.75, 0.7),
    job("police officer", [0.0, 20.0, 8.0, 10.0, 2.0], 0.25, 1.3),
    // Crafts
    job("builder", [50.0, 24.0, 42.0, 1.0, 0.0], 0.03, 1.05),
    job("electrician", [4.0, 8.0, 46.0, 2.0, 0.0], 0.03, 1.15),
    job("mechanic", [12.0, 14.0, 44.0, 1.0, 0.0], 0.04, 1.05),
    job("baker", [12.0, 6.0, 14.0, 0.0, 0.0], 0.4, 0.85),
    // Land and transport
    job("driver", [60.0, 36.0, 20.0, 3.0, 0.0], 0.08, 0.95),
    job("warehouse worker", [56.0, 30.0, 10.0, 3.0, 0.0], 0.3, 0.85),
    job("machine operator", [46.0, 22.0, 18.0, 1.0, 0.0], 0.3, 1.0),
    job("farm worker", [40.0, 8.0, 8.0, 1.0, 0.0], 0.3, 0.75),
];

/// Seven marital statuses.
pub(super) const MARITAL: [&str; 7] =
    ["never married", "married", "civil partnership", "married apart", "separated", "divorced", "widowed"];

/// Weights of the marital statuses by age: under 25, 25-34, 35-49, 50-64, 65-79, 80 or more.
pub(super) const MARITAL_BY_AGE: [[f64; 7]; 6] = [
    [950.0, 25.0, 15.0, 3.0, 5.0, 2.0, 0.0],
    [560.0, 320.0, 60.0, 10.0, 25.0, 24.0, 1.0],
    [270.0, 520.0, 50.0, 14.0, 40.0, 100.0, 6.0],
    [140.0, 580.0, 25.0, 12.0, 33.0, 170.0, 40.0],
    [70.0, 590.0, 10.0, 10.0, 20.0, 130.0, 170.0],
    [55.0, 330.0, 4.0, 12.0, 9.0, 60.0, 530.0],
];

/// Thirty diagnoses with their weights by age: under 15, 15-34, 35-59, 60-79, 80 or more.
pub(super) const DIAGNOSES: [(&str, [f64; 5]); 30] = [
    ("none recorded", [420.0, 380.0, 220.0, 70.0, 20.0]),
    ("cold", [210.0, 120.0, 80.0, 40.0, 25.0]),
    ("influenza", [60.0, 50.0, 45.0, 40.0, 35.0]),
    ("hypertension", [0.0, 12.0, 120.0, 210.0, 190.0]),
    ("back pain", [2.0, 60.0, 120.0, 90.0, 60.0]),
    ("allergy", [80.0, 75.0, 45.0, 20.0, 8.0]),
    ("asthma", [60.0, 45.0, 35.0, 25.0, 15.0]),
    ("type 2 diabetes", [0.0, 6.0, 55.0, 95.0, 75.0]),
    ("depression", [4.0, 60.0, 65.0, 35.0, 30.0]),
    ("anxiety", [8.0, 70.0, 50.0, 25.0, 15.0]),
    ("bronchitis", [25.0, 20.0, 25.0, 30.0, 30.0]),
    ("otitis", [75.0, 10.0, 5.0, 4.0, 3.0]),
    ("arthrosis", [0.0, 3.0, 40.0, 110.0, 120.0]),
    ("migraine", [6.0, 40.0, 35.0, 10.0, 3.0]),
    ("eczema", [40.0, 20.0, 12.0, 10.0, 8.0]),
    ("fracture", [25.0, 20.0, 15.0, 20.0, 45.0]),
    ("coronary disease", [0.0, 1.0, 20.0, 60.0, 90.0]),
    ("thyroid disorder", [1.0, 10.0, 22.0, 20.0, 15.0]),
    ("gastritis", [3.0, 20.0, 22.0, 15.0, 10.0]),
    ("anaemia", [5.0, 15.0, 12.0, 10.0, 15.0]),
    ("breast cancer", [0.0, 1.0, 10.0, 14.0, 9.0]),
    ("colon cancer", [0.0, 0.3, 4.0, 12.0, 12.0]),
    ("lung cancer", [0.0, 0.1, 3.0, 11.0, 7.0]),
    ("stroke", [0.0, 0.5, 4.0, 20.0, 45.0]),
    ("dementia", [0.0, 0.0, 1.0, 20.0, 130.0]),
    ("cataract", [0.1, 0.2, 3.0, 35.0, 50.0]),
    ("epilepsy", [5.0, 5.0, 4.0, 4.0, 4.0]),
    ("hepatitis", [0.3, 4.0, 5.0, 3.0, 1.0]),
    ("HIV", [0.1, 2.5, 3.0, 0.7, 0.1]),
    ("tuberculosis", [0.2, 0.8, 0.7, 0.8, 0.6]),
];

/// What the register has noted about a person; a row has up to three of them.
pub(super) const TAGS: [&str; 12] = [
    "voter",
    "car",
    "homeowner",
    "survey-2020",
    "survey-2025",
    "library",
    "blood donor",
    "veteran",
    "dual nationality",
    "allotment",
    "moved abroad",
    "name changed",
];

/// First names of women, then of men.
pub(super) const FIRST_NAMES: [[&str; 32]; 2] = [
    [
        "Ada", "Agnes", "Alma", "Anna", "Beatrix", "Cora", "Dora", "Edith", "Ella", "Elin", "Fay", "Freya", "Greta",
        "Hedy", "Ida", "Iris", "Joan", "Kaia", "Lena", "Linnea", "Mabel", "Maren", "Nell", "Nora", "Olive", "Petra",
        "Ruth", "Sylvia", "Tilda", "Una", "Vera", "Wilma",
    ],
    [
        "Abel", "Alfred", "Amos", "Anton", "Bruno", "Caspar", "Cyril", "Edgar", "Elias", "Emil", "Felix", "Gideon",
        "Hugo", "Ivo", "Jasper", "Jonas", "Karl", "Leo", "Linus", "Magnus", "Milo", "Ned", "Oscar", "Otto", "Paul",
        "Quentin", "Rufus", "Silas", "Theo", "Ulric", "Victor", "Walter",
    ],
];

/// Beginnings of family names.
pub(super) const FAMILY_STARTS: [&str; 32] = [
    "Alder", "Ash", "Barrow", "Beck", "Birch", "Black", "Brad", "Brook", "Cald", "Cross", "Dun", "Elm", "Fair", "Fen",
    "Green", "Hart", "Hazel", "Holm", "Kirk", "Lang", "Marsh", "Mill", "North", "Oak", "Pen", "Red", "Stan", "Thorn",
    "Under", "Wal", "West", "Wool",
];

/// Endings of family names.
pub(super) const FAMILY_ENDS: [&str; 24] = [
    "acre", "bank", "bourne", "bridge", "by", "combe", "croft", "dale", "den", "field", "ford", "gate", "ham", "hurst",
    "land", "ley", "low", "man", "more", "shaw", "stead", "ton", "well", "worth",
];
