-- Refused: the paper's web analytics adds noise, which does not exist yet.
CREATE STREAM NoisyPages AS
SELECT HISTOGRAM(page_view)
WINDOW TUMBLING (SIZE 10 SECONDS)
FROM PageVisit BETWEEN 100 AND 10000
WITH (epsilon = 0.1, delta = 1e-9);
