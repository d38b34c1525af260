// What tests/deploy/picture_data.py writes. Panels are as in the dashboard's JSON, as far as they are looked at.
import { FieldConfigSource } from '@grafana/data';

export interface Target {
  refId: string;
  expr: string;
  legendFormat: string;
}

export interface Panel {
  id: number;
  type: string;
  title: string;
  description?: string;
  gridPos: { x: number; y: number; w: number; h: number };
  fieldConfig: FieldConfigSource<any>;
  options: any;
  targets: Target[];
}

// A series of Prometheus' query_range: values with seconds since 1970.
export interface Series {
  metric: Record<string, string>;
  values: Array<[number, string]>;
}

export interface Annotation {
  name: string;
  color: string;
  result: Series[];
}

export interface Variable {
  name: string;
  label: string;
  type: string;
}

export interface Picture {
  dashboard: { title: string; panels: Panel[]; templating: { list: Variable[] } };
  answers: Record<number, Record<string, Series[]>>;
  annotations: Annotation[];
  begin: number;
  end: number;
  step: number;
}
