-- All households, hour by hour, for one reader: the service that adds them up cannot read them.
CREATE STREAM EnergyForTheGrid AS
SELECT SUM(energy_kwh),
       COUNT(energy_kwh),
       AVG(energy_kwh),
       VAR(energy_kwh),
       HISTOGRAM(energy_kwh, 0, 0.2, 10)
WINDOW TUMBLING (SIZE 1 HOUR)
FROM SmartMeter
RELEASE TO 'grid.example';
