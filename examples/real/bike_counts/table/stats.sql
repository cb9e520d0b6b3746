-- All hours.
SELECT COUNT(west), SUM(west), AVG(west), VAR(west),
       COUNT(east), SUM(east), MEAN(east), VAR(east),
       COV(east, west), REGRESSION(east ~ west),
       COV(west, east), REGRESSION(west ~ east)
FROM BikeCounts;

-- Each day.
SELECT COUNT(west), SUM(west), AVG(west), VAR(west),
       COUNT(east), SUM(east), AVG(east), VAR(east)
FROM BikeCounts
GROUP BY DAY(timestamp);

-- A spring, from its first day to its last.
SELECT COUNT(west), SUM(west), AVG(west), VAR(west),
       COUNT(east), SUM(east), AVG(east), VAR(east)
FROM BikeCounts
WHERE day BETWEEN '2013-03-20' AND '2013-06-20'
GROUP BY DAY(timestamp);
