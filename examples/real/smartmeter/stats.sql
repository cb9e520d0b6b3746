-- All households, hour by hour.
CREATE STREAM EnergyByHour AS
SELECT SUM(energy_kwh),
       COUNT(energy_kwh),
       AVG(energy_kwh),
       VAR(energy_kwh),
       HISTOGRAM(energy_kwh, 0, 0.2, 10)
WINDOW TUMBLING (SIZE 1 HOUR)
FROM SmartMeter;
