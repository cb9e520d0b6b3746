-- How far people get when they buy.
CREATE STREAM Flows AS
SELECT HISTOGRAM(flow_buy), MODE(flow_buy)
WINDOW TUMBLING (SIZE 10 SECONDS)
FROM PageVisit BETWEEN 10 AND 10000;
