-- The generated tables of the experiments, made from the repository's folder: throng sql pipelines/experiments/data.sql
-- Every value is a function of its row and column, so the tables are always the same.

CREATE VIEW noise AS
SELECT row, part, a - floor(a) AS a, b - floor(b) AS b
FROM (
    SELECT
        row,
        part,
        abs(sin(row * 12.9898 + part * 78.233) * 43758.5453) AS a,
        abs(sin(row * 39.3467 + part * 11.135) * 24634.6345) AS b
    FROM generate_series(1, 50000) AS rows(row), generate_series(1, 8) AS parts(part)
);

-- Loukides, 6.5: 50,000 rows of five quasi-identifiers and a sensitive column, normal distributions cut into the integers
-- 0 to 19.
COPY (
    SELECT
        max(value) FILTER (WHERE part = 1) AS q1,
        max(value) FILTER (WHERE part = 2) AS q2,
        max(value) FILTER (WHERE part = 3) AS q3,
        max(value) FILTER (WHERE part = 4) AS q4,
        max(value) FILTER (WHERE part = 5) AS q5,
        max(value) FILTER (WHERE part = 6) AS s
    FROM (
        SELECT
            row,
            part,
            CAST(least(19, greatest(0, floor(10 + 2.5 * sqrt(-2 * ln(a + 1e-9)) * cos(2 * pi() * b)))) AS INT) AS value
        FROM noise
    )
    GROUP BY row
) TO 'pipelines/out/experiments/normal.parquet' STORED AS PARQUET;

-- Loukides, 4.1: Adult with occupations as numbers, like ones side by side. The thesis does not print its codes; these are our
-- hierarchy's groups one after the other (technical, nontechnical, other).
CREATE EXTERNAL TABLE adult STORED AS PARQUET LOCATION 'pipelines/data/adult.parquet';

COPY (
    SELECT
        age, sex, race, "salary-class", "native-country", workclass, "marital-status",
        CASE occupation
            WHEN 'Tech-support' THEN 0 WHEN 'Prof-specialty' THEN 1 WHEN 'Craft-repair' THEN 2 WHEN 'Machine-op-inspct' THEN 3
            WHEN 'Handlers-cleaners' THEN 4 WHEN 'Sales' THEN 5 WHEN 'Exec-managerial' THEN 6 WHEN 'Adm-clerical' THEN 7
            WHEN 'Protective-serv' THEN 8 WHEN 'Armed-Forces' THEN 9 WHEN 'Transport-moving' THEN 10
            WHEN 'Farming-fishing' THEN 11 WHEN 'Other-service' THEN 12 ELSE 13
        END AS occupation
    FROM adult
) TO 'pipelines/out/experiments/adult-numbers.parquet' STORED AS PARQUET;

-- Gorla, 6.1: as many rows, columns, values and dependencies as the food inspections of New York have in her table 26, and as
-- many instances as in table 24: 506 + 84 + 139 + 753 + 84 + 300 = 1,866. So 247 of the addresses have a second cuisine. Values
-- are made up; squares make some common and others rare.
CREATE VIEW draws AS
SELECT
    row,
    max(a) FILTER (WHERE part = 1) AS address,
    max(a) FILTER (WHERE part = 2) AS code,
    max(a) FILTER (WHERE part = 3) AS cuisine,
    max(a) FILTER (WHERE part = 4) AS kind,
    max(a) FILTER (WHERE part = 5) AS flag,
    max(a) FILTER (WHERE part = 6) AS score
FROM noise
WHERE row <= 30000
GROUP BY row;

CREATE VIEW skewed AS
SELECT
    CAST(floor(506 * address * address) AS INT) AS address,
    CAST(floor(84 * code * code) AS INT) AS code,
    cuisine,
    CAST(floor(28 * kind * kind) AS INT) AS kind,
    CAST(floor(3 * flag) AS INT) AS flag,
    CAST(floor(100 * score * score) AS INT) AS score
FROM draws;

-- The same with every value of a column equally frequent, for figure 12.
CREATE VIEW even AS
SELECT
    CAST(floor(506 * address) AS INT) AS address,
    CAST(floor(84 * code) AS INT) AS code,
    cuisine,
    CAST(floor(28 * kind) AS INT) AS kind,
    CAST(floor(3 * flag) AS INT) AS flag,
    CAST(floor(100 * score) AS INT) AS score
FROM draws;

COPY (
    SELECT
        CAST(address % 139 % 5 AS VARCHAR) AS borough,
        lpad(CAST(address AS VARCHAR), 3, '0') AS address,
        lpad(CAST(code AS VARCHAR), 2, '0') AS violation_code,
        lpad(CAST(address % 139 AS VARCHAR), 3, '0') AS zipcode,
        lpad(CAST(code % 81 AS VARCHAR), 2, '0') AS violation,
        lpad(CAST((address * 7 + CASE WHEN address < 247 AND cuisine < 0.5 THEN 31 ELSE 0 END) % 63 AS VARCHAR), 2, '0') AS cuisine,
        CAST((kind * 3 + flag) % 5 AS VARCHAR) AS action,
        lpad(CAST(kind AS VARCHAR), 2, '0') AS inspection,
        CAST(flag AS VARCHAR) AS critical,
        score,
        CAST((score / 25 + flag) % 4 AS VARCHAR) AS grade
    FROM skewed
) TO 'pipelines/out/experiments/inspections.parquet' STORED AS PARQUET;

COPY (
    SELECT
        CAST(address % 139 % 5 AS VARCHAR) AS borough,
        lpad(CAST(address AS VARCHAR), 3, '0') AS address,
        lpad(CAST(code AS VARCHAR), 2, '0') AS violation_code,
        lpad(CAST(address % 139 AS VARCHAR), 3, '0') AS zipcode,
        lpad(CAST(code % 81 AS VARCHAR), 2, '0') AS violation,
        lpad(CAST((address * 7 + CASE WHEN address < 247 AND cuisine < 0.5 THEN 31 ELSE 0 END) % 63 AS VARCHAR), 2, '0') AS cuisine,
        CAST((kind * 3 + flag) % 5 AS VARCHAR) AS action,
        lpad(CAST(kind AS VARCHAR), 2, '0') AS inspection,
        CAST(flag AS VARCHAR) AS critical,
        score,
        CAST((score / 25 + flag) % 4 AS VARCHAR) AS grade
    FROM even
) TO 'pipelines/out/experiments/inspections-even.parquet' STORED AS PARQUET;

-- The same with a cuisine that has nothing to do with the address, as this page had it once: some 16,000 instances, nearly
-- all of them of one dependency.
COPY (
    SELECT
        CAST(address % 139 % 5 AS VARCHAR) AS borough,
        lpad(CAST(address AS VARCHAR), 3, '0') AS address,
        lpad(CAST(code AS VARCHAR), 2, '0') AS violation_code,
        lpad(CAST(address % 139 AS VARCHAR), 3, '0') AS zipcode,
        lpad(CAST(code % 81 AS VARCHAR), 2, '0') AS violation,
        lpad(CAST(CAST(floor(63 * cuisine * cuisine) AS INT) AS VARCHAR), 2, '0') AS cuisine,
        CAST((kind * 3 + flag) % 5 AS VARCHAR) AS action,
        lpad(CAST(kind AS VARCHAR), 2, '0') AS inspection,
        CAST(flag AS VARCHAR) AS critical,
        score,
        CAST((score / 25 + flag) % 4 AS VARCHAR) AS grade
    FROM skewed
) TO 'pipelines/out/experiments/inspections-many.parquet' STORED AS PARQUET;

-- Tinabo, 5.2: PatInfo as table 5.1 describes it, 30,200 rows of random values that have nothing to do with each other: 880, 876
-- and 879 days, 2 genders, 33 addresses, 7 marital statuses, 3 discharge statuses. Codes hold their hierarchies: heights 3 for
-- addresses and 2 for marital statuses. The table lists 10 diseases, the text says 14 and asks for l = 14; here are 14.
COPY (
    SELECT
        arrow_cast(-3650 + 17 * CAST(floor(880 * max(a) FILTER (WHERE part = 1)) AS INT), 'Date32') AS birth,
        CAST(CAST(floor(2 * max(a) FILTER (WHERE part = 2)) AS INT) AS VARCHAR) AS gender,
        CAST(CAST(floor(33 * max(a) FILTER (WHERE part = 3)) AS INT) / 16 AS VARCHAR)
            || CAST(CAST(floor(33 * max(a) FILTER (WHERE part = 3)) AS INT) / 4 % 4 AS VARCHAR)
            || CAST(CAST(floor(33 * max(a) FILTER (WHERE part = 3)) AS INT) % 4 AS VARCHAR) AS address,
        CAST(CAST(floor(7 * max(a) FILTER (WHERE part = 4)) AS INT) / 4 AS VARCHAR)
            || CAST(CAST(floor(7 * max(a) FILTER (WHERE part = 4)) AS INT) % 4 AS VARCHAR) AS marital_status,
        arrow_cast(11690 + 3 * CAST(floor(876 * max(a) FILTER (WHERE part = 5)) AS INT), 'Date32') AS admission,
        arrow_cast(13880 + 2 * CAST(floor(879 * max(a) FILTER (WHERE part = 6)) AS INT), 'Date32') AS discharge,
        CAST(CAST(floor(3 * max(a) FILTER (WHERE part = 7)) AS INT) AS VARCHAR) AS discharge_status,
        CAST(CAST(floor(14 * max(a) FILTER (WHERE part = 8)) AS INT) AS VARCHAR) AS disease
    FROM noise
    WHERE row <= 30200
    GROUP BY row
) TO 'pipelines/out/experiments/patinfo.parquet' STORED AS PARQUET;
