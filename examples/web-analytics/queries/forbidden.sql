-- Refused: a window may cost each visitor ε = 1, and this asks for 5.
CREATE STREAM TooOpen AS
SELECT HISTOGRAM(page_view)
WINDOW TUMBLING (SIZE 10 SECONDS)
FROM PageVisit BETWEEN 10 AND 10000
WITH (epsilon = 5, events = 6);
