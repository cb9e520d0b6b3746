
-- Which pages have been seen so far, after every ten seconds of one minute: running totals
-- whose noise is charged once, and grows much slower than that of windows added up.
CREATE STREAM PagesSoFar AS
SELECT HISTOGRAM(page_view)
WINDOW CUMULATING (STEP 10 SECONDS, SIZE 1 MINUTE)
FROM PageVisit BETWEEN 10 AND 10000
WITH (epsilon = 1, events = 6);
