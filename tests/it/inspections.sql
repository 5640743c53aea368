-- Inspections with many different combinations, in which dependencies expose much. Every value is a function of its row and
-- column, so the table is always the same.

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

-- Squares make some values common and others rare.
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
) TO 'FOLDER/in.parquet' STORED AS PARQUET;
