-- Which pages are seen and left, every ten seconds.
CREATE STREAM Pages AS
SELECT HISTOGRAM(page_view), HISTOGRAM(page_exit), TOPK(page_view, 5) AS busiest
WINDOW TUMBLING (SIZE 10 SECONDS)
FROM PageVisit BETWEEN 10 AND 10000;
