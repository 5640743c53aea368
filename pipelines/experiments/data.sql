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

-- Gorla, 6.1: as many rows, columns, values and dependencies as the food inspections of New York have in her table 26, with
-- made-up values. Squares make some values common and others rare.
COPY (
    SELECT
        CAST(address % 139 % 5 AS VARCHAR) AS borough,
        lpad(CAST(address AS VARCHAR), 3, '0') AS address,
        lpad(CAST(code AS VARCHAR), 2, '0') AS violation_code,
        lpad(CAST(address % 139 AS VARCHAR), 3, '0') AS zipcode,
        lpad(CAST(code % 81 AS VARCHAR), 2, '0') AS violation,
        lpad(CAST(cuisine AS VARCHAR), 2, '0') AS cuisine,
        CAST((kind * 3 + flag) % 5 AS VARCHAR) AS action,
        lpad(CAST(kind AS VARCHAR), 2, '0') AS inspection,
        CAST(flag AS VARCHAR) AS critical,
        score,
        CAST((score / 25 + flag) % 4 AS VARCHAR) AS grade
    FROM (
        SELECT
            row,
            CAST(floor(506 * max(a * a) FILTER (WHERE part = 1)) AS INT) AS address,
            CAST(floor(84 * max(a * a) FILTER (WHERE part = 2)) AS INT) AS code,
            CAST(floor(63 * max(a * a) FILTER (WHERE part = 3)) AS INT) AS cuisine,
            CAST(floor(28 * max(a * a) FILTER (WHERE part = 4)) AS INT) AS kind,
            CAST(floor(3 * max(a) FILTER (WHERE part = 5)) AS INT) AS flag,
            CAST(floor(100 * max(a * a) FILTER (WHERE part = 6)) AS INT) AS score
        FROM noise
        WHERE row <= 30000
        GROUP BY row
    )
) TO 'pipelines/out/experiments/inspections.parquet' STORED AS PARQUET;
