-- All hours of both cameras.
SELECT COUNT(heavy), SUM(heavy), AVG(heavy), VAR(heavy),
       COUNT(car), SUM(car), AVG(car), VAR(car),
       COUNT(bike), SUM(bike), AVG(bike), VAR(bike),
       COUNT(pedestrian), SUM(pedestrian), AVG(pedestrian), VAR(pedestrian),
       COV(heavy, car), REGRESSION(heavy ~ car),
       COV(heavy, bike), REGRESSION(heavy ~ bike),
       COV(heavy, pedestrian), REGRESSION(heavy ~ pedestrian),
       COV(car, heavy), REGRESSION(car ~ heavy),
       COV(car, bike), REGRESSION(car ~ bike),
       COV(car, pedestrian), REGRESSION(car ~ pedestrian),
       COV(bike, heavy), REGRESSION(bike ~ heavy),
       COV(bike, car), REGRESSION(bike ~ car),
       COV(bike, pedestrian), REGRESSION(bike ~ pedestrian),
       COV(pedestrian, heavy), REGRESSION(pedestrian ~ heavy),
       COV(pedestrian, car), REGRESSION(pedestrian ~ car),
       COV(pedestrian, bike), REGRESSION(pedestrian ~ bike)
FROM TrafficCounts;

-- Each camera's days.
SELECT COUNT(heavy), SUM(heavy), AVG(heavy), VAR(heavy),
       COUNT(car), SUM(car), AVG(car), VAR(car),
       COUNT(bike), SUM(bike), AVG(bike), VAR(bike),
       COUNT(pedestrian), SUM(pedestrian), AVG(pedestrian), VAR(pedestrian)
FROM TrafficCounts
GROUP BY DAY(timestamp), segment_id;
