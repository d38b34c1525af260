// A panel's inside, by its type: the components of @grafana/ui with what Grafana would give them.
import { applyNullInsertThreshold, dateTime, getFieldDisplayValues, TimeRange } from '@grafana/data';
import { BigValue, TimeSeries, useTheme2 } from '@grafana/ui';
import { framesOf } from './frames';
import { Heatmap } from './heatmap';
import { addMarks } from './marks';
import { Panel, Picture } from './picture';

export interface PanelProps {
  panel: Panel;
  picture: Picture;
  width: number;
  height: number;
}

export function timeRange(picture: Picture): TimeRange {
  const from = dateTime(picture.begin * 1000);
  const to = dateTime(picture.end * 1000);
  return { from, to, raw: { from, to } };
}

function NoData() {
  return <div className="no-data">No data</div>;
}

function Stat({ panel, picture, width, height }: PanelProps) {
  const theme = useTheme2();
  const { reduceOptions, colorMode, graphMode, textMode, justifyMode } = panel.options;
  const [value] = getFieldDisplayValues({
    fieldConfig: panel.fieldConfig, reduceOptions, theme, timeZone: 'utc', replaceVariables: (text) => text,
    data: framesOf(panel, picture, theme), sparkline: graphMode !== 'none',
  });
  const sparkline = value.sparkline && { ...value.sparkline, timeRange: timeRange(picture) };
  return (
    <BigValue
      value={value.display} sparkline={sparkline} theme={theme} width={width} height={height}
      colorMode={colorMode} graphMode={graphMode} textMode={textMode} justifyMode={justifyMode}
    />
  );
}

function Lines({ panel, picture, width, height }: PanelProps) {
  const theme = useTheme2();
  const range = timeRange(picture);
  // The component breaks only the first line where values are missing; Grafana breaks all before it calls the component.
  const frames = framesOf(panel, picture, theme).map((frame) => applyNullInsertThreshold({
    frame, refFieldPseudoMin: range.from.valueOf(), refFieldPseudoMax: range.to.valueOf(),
  }));
  if (frames.length === 0) {
    return <NoData />;
  }
  return (
    <TimeSeries
      frames={frames} timeRange={range} timeZone="utc" width={width} height={height} legend={panel.options.legend}
    >
      {(builder) => {
        addMarks(builder, picture, theme);
        return null;
      }}
    </TimeSeries>
  );
}

// A type that is not here is an error, so that the test fails instead of the picture lacking a panel.
export function PanelBody(props: PanelProps) {
  switch (props.panel.type) {
    case 'stat':
      return <Stat {...props} />;
    case 'timeseries':
      return <Lines {...props} />;
    case 'heatmap':
      return <Heatmap {...props} />;
    default:
      throw new Error(`no component for panels of the type ${props.panel.type}`);
  }
}
