-- Each household's own day.
CREATE STREAM EnergyByHousehold AS
SELECT SUM(energy_kwh),
       COUNT(energy_kwh),
       AVG(energy_kwh),
       VAR(energy_kwh),
       HISTOGRAM(energy_kwh, 0, 0.2, 10)
WINDOW TUMBLING (SIZE 1 DAY)
FROM SmartMeter
GROUP BY VID;
