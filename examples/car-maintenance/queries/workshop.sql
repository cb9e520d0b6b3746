-- One car's own histograms, for its owner's workshop.
CREATE STREAM Workshop AS
SELECT HISTOGRAM(tyre_pressure), HISTOGRAM(oil), HISTOGRAM(engine)
WINDOW TUMBLING (SIZE 10 SECONDS)
FROM CarSensors BETWEEN 1 AND 1
RELEASE TO 'workshop.example';
