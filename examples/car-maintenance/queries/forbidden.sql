-- Refused: one car's own sums are for nobody, its histograms for its workshop.
CREATE STREAM OneCar AS
SELECT AVG(oil)
WINDOW TUMBLING (SIZE 10 SECONDS)
FROM CarSensors BETWEEN 1 AND 1
RELEASE TO 'workshop.example';
