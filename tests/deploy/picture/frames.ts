// From the answers of Prometheus to data frames with the panel's field configuration, as Grafana's data source and its
// panels would make them.
import {
  applyFieldOverrides, createDataFrame, DataFrame, FieldColorModeId, FieldConfigPropertyItem, FieldConfigSource, FieldType,
  GrafanaTheme2, identityOverrideProcessor, Registry,
} from '@grafana/data';
import { Panel, Picture, Series, Target } from './picture';

// The ids of all options that a panel sets, for all its fields or for some.
function optionsOf({ defaults, overrides }: FieldConfigSource<any>) {
  const { custom, ...standard } = defaults;
  const ids = overrides.flatMap((rule) => rule.properties.map((property) => property.id));
  return [...new Set([...Object.keys(standard), ...Object.keys(custom ?? {}).map((name) => `custom.${name}`), ...ids])];
}

// Grafana's own registry of options is part of its application and in no package. All options here are plain values, so
// that one entry is like the other.
function registryOf(ids: string[]) {
  return new Registry<FieldConfigPropertyItem>(() => ids.map((id) => {
    const isCustom = id.startsWith('custom.');
    return {
      id, name: id, path: isCustom ? id.slice('custom.'.length) : id, isCustom, settings: {}, shouldApply: () => true,
      process: identityOverrideProcessor, editor: () => null, override: () => null,
    };
  }));
}

// JSON has no infinity: the first threshold has null.
function withThresholds(defaults: any) {
  const steps = defaults.thresholds?.steps.map((step: any) => ({ ...step, value: step.value ?? -Infinity }));
  return steps ? { ...defaults, thresholds: { ...defaults.thresholds, steps } } : defaults;
}

// What a dashboard leaves out: lines take colours of the palette, single values those of their thresholds.
function fieldConfig(panel: Panel): FieldConfigSource {
  const mode = panel.type === 'stat' ? FieldColorModeId.Thresholds : FieldColorModeId.PaletteClassic;
  return { ...panel.fieldConfig, defaults: { color: { mode }, ...withThresholds(panel.fieldConfig.defaults) } };
}

function legend(target: Target, labels: Record<string, string>) {
  return target.legendFormat.replace(/{{\s*(\w+)\s*}}/g, (_, name) => labels[name] ?? '');
}

// A line cannot be drawn through NaN, which Prometheus gives for 0/0; a single value says it.
function numberOf(text: string, panel: Panel) {
  const value = text === '+Inf' ? Infinity : Number(text);
  return Number.isFinite(value) || panel.type === 'stat' ? value : null;
}

function frameOf(series: Series, target: Target, panel: Panel, step: number): DataFrame {
  return createDataFrame({
    refId: target.refId,
    fields: [
      // Where a step has no value, the line has a gap.
      {
        name: 'Time', type: FieldType.time, config: { interval: step * 1000 },
        values: series.values.map(([time]) => time * 1000),
      },
      {
        name: 'Value', type: FieldType.number, labels: series.metric,
        config: { displayNameFromDS: legend(target, series.metric) },
        values: series.values.map(([, text]) => numberOf(text, panel)),
      },
    ],
  });
}

export function framesOf(panel: Panel, picture: Picture, theme: GrafanaTheme2): DataFrame[] {
  const data = panel.targets.flatMap((target) =>
    picture.answers[panel.id][target.refId].map((series) => frameOf(series, target, panel, picture.step)));
  const config = fieldConfig(panel);
  return applyFieldOverrides({
    data, fieldConfig: config, theme, timeZone: 'utc', replaceVariables: (text) => text,
    fieldConfigRegistry: registryOf(optionsOf(config)),
  });
}
