-- Wear across the fleet, every ten seconds.
CREATE STREAM Fleet AS
SELECT AVG(oil), VAR(oil), AVG(engine), VAR(engine), AVG(tyre_pressure), VAR(tyre_pressure)
WINDOW TUMBLING (SIZE 10 SECONDS)
FROM CarSensors BETWEEN 10 AND 10000;
