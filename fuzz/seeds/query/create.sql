CREATE STREAM HeartRates (heart_rate) AS
  SELECT AVG(heart_rate) AS mean, VAR(heart_rate), HISTOGRAM(altitude, 0, 5, 800), HISTOGRAM(bytes, EDGES(0, 1, 100)) AS sizes
  WINDOW TUMBLING (SIZE 1 HOUR, GRACE PERIOD 5 SECONDS)
  FROM MedicalSensor BETWEEN 100 AND 1000
  WHERE region = 'California' AND ageGroup = 'senior' GROUP BY region WITH (epsilon = 0.5, delta = 1e-9)
