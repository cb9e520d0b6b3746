-- Which pages are seen, every ten seconds, with noise that hides all that any
-- one visitor did in the window. Visitors of more than six pages are left out.
CREATE STREAM NoisyPages AS
SELECT HISTOGRAM(page_view), TOPK(page_view, 5) AS busiest
WINDOW TUMBLING (SIZE 10 SECONDS)
FROM PageVisit BETWEEN 10 AND 10000
WITH (epsilon = 1, events = 6);
